package lines

import (
	"errors"
	"fmt"
)

// mostTold is how many failures of one pass are told.
const mostTold = 8

// failures are what failed for some of many. The first ones are told and the others counted: of a full disk all fail.
type failures struct {
	told []error
	more int
}

func (f *failures) add(err error) {
	if len(f.told) < mostTold {
		f.told = append(f.told, err)
	} else {
		f.more++
	}
}

// with joins them and what ended the pass; nil if there is nothing.
func (f *failures) with(err error) error {
	all := f.told
	if f.more > 0 {
		all = append(all, fmt.Errorf("%d more failed", f.more))
	}
	return errors.Join(append(all, err)...)
}
