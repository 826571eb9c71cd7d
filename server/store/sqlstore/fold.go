package sqlstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// FoldText returns text in its searchable form: valid, composed, in lower case, with one space for any run of white
// space and control characters, and none at the ends.
func FoldText(text string) string { return string(AppendFolded(make([]byte, 0, len(text)), text)) }

// AppendFolded appends FoldText of a text.
func AppendFolded(to []byte, text string) []byte {
	text = transcript.Compose(text)
	to = slices.Grow(to, len(text))
	from, space := len(to), false
	for i := 0; i < len(text); {
		c := text[i]
		r, size := rune(c), 1
		if c < utf8.RuneSelf {
			if c = plain[c]; c != 0 && !space {
				to = append(to, c)
				i++
				continue
			}
		} else {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		i += size
		switch {
		case isSpace(r):
			space = len(to) > from
			continue
		case space:
			to, space = append(to, ' '), false
		}
		if r < utf8.RuneSelf {
			to = append(to, c)
		} else {
			to = utf8.AppendRune(to, unicode.ToLower(r))
		}
	}
	return to
}

// plain is what each ASCII character becomes; 0 for space.
var plain = func() (out [utf8.RuneSelf]byte) {
	for c := range out {
		if !isSpace(rune(c)) {
			out[c] = byte(unicode.ToLower(rune(c)))
		}
	}
	return out
}()

func isSpace(r rune) bool {
	if r < utf8.RuneSelf {
		return r <= ' ' || r == 0x7f
	}
	return unicode.IsSpace(r) || unicode.IsControl(r)
}

// foldSpace returns text with one space for any run of white space and control characters, and none at the ends.
func foldSpace(text string) string { return strings.Join(strings.FieldsFunc(text, isSpace), " ") }

// IsASCII reports whether a text holds nothing else.
func IsASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// LikeContains returns a LIKE pattern, with \ as its escape, for texts that hold word.
func LikeContains(word string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(word) + "%"
}

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

// End is where a stream's newest generation ended before a batch.
type End struct {
	Epoch                     int64 // the batch's
	Front                     bool  // no epoch is newer
	First                     bool  // the epoch has no generation yet
	Generation, Rewound, Line int64
}

// Behind says whether a batch stored something other than at the stream's end: what is derived may lack it.
func (e End) Behind(h *server.Head, w Written) bool {
	switch {
	case e.Front && (e.First || h.Generation > e.Generation):
		return false
	case e.Front && h.Generation == e.Generation:
		return w.Any && w.From < e.Line || h.RewoundTo < e.Rewound
	}
	return true
}

// Written is what a batch changed: lines from from up to before to, and by how many bytes its generation grew.
type Written struct {
	Any      bool
	From, To int64
	Bytes    int64
}

// CheckFront refuses a batch with a Writer that would begin an epoch besides another one, go on in one that is not in
// front, or move the start of the newest generation. A *server.StreamError has the position where the writer continues.
// An epoch that the batch began is in front already.
func (e *End) CheckFront(ctx context.Context, d Dialect, of OwnedStream, h *server.Head) error {
	if h.Writer.Incarnation == "" {
		return nil
	}
	if e.Front && !e.First {
		if h.Generation == e.Generation && h.RewoundTo != e.Rewound {
			return &server.StreamError{Code: protocol.CodeOtherBytes, Epoch: h.Epoch, Generation: e.Generation,
				Line: min(h.RewoundTo, e.Rewound)}
		}
		return nil
	}
	var front *server.StreamError
	err := d.Query(ctx, `
SELECT e.name, g.generation, CASE WHEN g.end_line > g.rewound_to THEN g.end_line ELSE g.rewound_to END
FROM epochs e JOIN generations g ON g.owner = e.owner AND g.stream = e.stream AND g.epoch = e.rank
WHERE e.owner = ? AND e.stream = ? AND e.rank <> ?
ORDER BY e.rank DESC, g.generation DESC LIMIT 1`, []any{of.Owner, of.Stream, e.Epoch}, func(row Scanner) error {
		front = &server.StreamError{Code: protocol.CodeOtherEpoch}
		return row.Scan(&front.Epoch, &front.Generation, &front.Line)
	})
	if err != nil {
		return fmt.Errorf("find the epoch in front: %w", err)
	}
	if front != nil {
		return front
	}
	return nil
}

// copiedFrom finds the session that a stream's history was copied from, of those that have answers of it. A fork takes
// all of the other session's history, and goes on at once: so of two sessions with answers in common, the fork is the
// one that went on first. The other one has gone on later, or not at all. Of two that have not, the later stream is the
// fork. Of several, it is the one with most in common, and then the one that went on last: the others are forks of it
// too. An answer that comes later than its copy was copied from it: see package derive. A copy of a session is no other
// session.
const copiedFrom = `
WITH others AS (
  SELECT o.owner, o.stream, count(*) AS shared FROM answers a
  JOIN answers o ON o.owner = a.owner AND o.key = a.key AND o.stream <> a.stream AND o.time <= a.time
  JOIN streams s ON s.owner = o.owner AND s.id = o.stream
  WHERE a.owner = ? AND a.stream = ? AND NOT a.sidechain AND NOT o.sidechain
    AND s.parent = '' AND s.session_id <> ?
    AND NOT EXISTS (SELECT 1 FROM facts f WHERE f.owner = o.owner AND f.stream = o.stream AND (f.copy = 1
      OR f.origin <> '' AND f.origin = (
        SELECT t.origin FROM facts t WHERE t.owner = a.owner AND t.stream = a.stream)))
  GROUP BY o.owner, o.stream
), ages AS (
  SELECT x.owner, x.stream, x.shared,
    (SELECT min(a.time) FROM answers a WHERE a.owner = ? AND a.stream = ? AND NOT a.sidechain AND NOT EXISTS (
      SELECT 1 FROM answers o WHERE o.owner = a.owner AND o.key = a.key AND o.stream = x.stream)) AS own,
    (SELECT min(o.time) FROM answers o WHERE o.owner = x.owner AND o.stream = x.stream
      AND NOT o.sidechain AND NOT EXISTS (
      SELECT 1 FROM answers a WHERE a.owner = o.owner AND a.key = o.key AND a.stream = ?)) AS theirs
  FROM others x
)
SELECT s.session_id FROM ages JOIN streams s ON s.owner = ages.owner AND s.id = ages.stream
WHERE own IS NOT NULL AND (theirs IS NULL OR theirs > own) OR own IS NULL AND theirs IS NULL AND ages.stream < ?
ORDER BY shared DESC, theirs IS NOT NULL, theirs DESC, ages.stream LIMIT 1`

// CopiedFrom returns the id of the session that another one's history was copied from, "" if it was not.
func CopiedFrom(ctx context.Context, l Dialect, x *server.Session) (string, error) {
	args := []any{x.Owner, x.ID, x.SessionID, x.Owner, x.ID, x.ID, x.ID}
	id, err := first(ctx, l, copiedFrom, args, func(row Scanner) (id string, err error) {
		err = row.Scan(&id)
		return id, err
	})
	if err != nil && !errors.Is(err, server.ErrNotFound) {
		return "", fmt.Errorf("look for the origin: %w", err)
	}
	return id, nil
}
