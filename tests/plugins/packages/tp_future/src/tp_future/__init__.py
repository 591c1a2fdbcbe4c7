"""Must never be imported: it speaks a later version of the API."""

raise AssertionError("a plugin of another API version was imported")
