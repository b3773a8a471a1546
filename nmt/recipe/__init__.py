"""Every knob and its default; a recipe read, checked, explained and written."""
