"""The HTTP service: LibreTranslate's API and our own, and the page that uses them."""
