"""The factories files of a calibration. A folder of their own: a worker puts it first on its import path."""
