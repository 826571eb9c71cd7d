package sys

import "os"

func openPlain(path string, flag int) (*os.File, error) { return os.OpenFile(path, flag, 0o600) }
