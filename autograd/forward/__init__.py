"""Forward mode: tangents, and the rules by which ops carry them on."""
