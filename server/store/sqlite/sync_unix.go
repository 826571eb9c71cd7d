//go:build !windows

package sqlite

import (
	"errors"
	"os"
)

// syncDir makes a rename in a folder durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
