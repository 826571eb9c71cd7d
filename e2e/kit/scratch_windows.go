package kit

import "os"

// own needs no lock here: nothing is removed for others.
func own(string) (*os.File, error) { return nil, nil }

func abandoned(string) bool { return false }
