"""One module for each library; its `programs` are what runs."""
