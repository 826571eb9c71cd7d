package sqlstore

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Opening is how a store is opened.
type Opening struct {
	// Say hears, in words for people, what opening waits for or does that may take long. nil: nobody hears it.
	Say func(text string)
	// AsIs opens no store whose schema would have to be made: ErrOutdated.
	AsIs bool
	// Replica is the URL of a standby for reads that may be a few seconds old; "": none. PostgreSQL only.
	Replica string
	// Blocks is the URL of a location for what is old; "": the one that the store had last, if any.
	Blocks string
	// Step is called before each step of packing lines, of moving what is old and of retention, by its name; an error ends
	// it there. For tests.
	Step func(name string) error
}

// Tell passes a text on to Say, if there is one.
func (o Opening) Tell(format string, args ...any) {
	if o.Say != nil {
		o.Say(fmt.Sprintf(format, args...))
	}
}

// ErrNewer means that a newer version of this program made the schema.
var ErrNewer = errors.New("written by a newer ccship-server; upgrade this one")

// ErrOtherBuild means that another build of this program made the schema. Until version 1.0 no build reads the database
// of one with another schema.
var ErrOtherBuild = errors.New("made by another build of ccship-server, with a schema that this one does not read; " +
	"start with a new database: ccship verify then sends everything anew")

// SchemaSum tells one text of a schema from another. Comments and spaces do not count.
func SchemaSum(text string) string {
	h := sha256.New()
	for line := range strings.Lines(text) {
		code, _, _ := strings.Cut(line, "--")
		for _, word := range strings.Fields(code) {
			fmt.Fprintln(h, word)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// ErrOutdated means that the schema would have to be made, and that this was not wished.
var ErrOutdated = errors.New("the store has no schema yet")

// ErrBadURL is for store URLs that name no store; its text says what would.
var ErrBadURL = errors.New("bad store URL")
