"""Documents of any format: texts with marks inside, and all that stays around them."""
