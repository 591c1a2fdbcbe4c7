# Compiled as it is: its rules run at every call that is not known.
