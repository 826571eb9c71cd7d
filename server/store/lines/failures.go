package lines

import (
	"errors"
	"fmt"
)

// mostListed is how many failures of one pass are listed.
const mostListed = 8

// failures lists the first errors of a pass and counts the others: when the disk is full, everything fails.
type failures struct {
	list []error
	more int
}

func (f *failures) add(err error) {
	if len(f.list) < mostListed {
		f.list = append(f.list, err)
	} else {
		f.more++
	}
}

// with joins them and what ended the pass; nil if there is nothing.
func (f *failures) with(err error) error {
	all := f.list
	if f.more > 0 {
		all = append(all, fmt.Errorf("%d more failed", f.more))
	}
	return errors.Join(append(all, err)...)
}
