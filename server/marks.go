package server

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Mark is what one user keeps about a session: for nobody else. The zero Mark is none.
type Mark struct {
	Stream  int64     `json:"-"`
	Star    bool      `json:"star"`
	Name    string    `json:"name"` // instead of the session's title
	Note    string    `json:"note"`
	Tags    []string  `json:"tags"`
	Updated time.Time `json:"updated,omitzero"`
}

// Empty reports whether there is nothing to keep.
func (m *Mark) Empty() bool { return !m.Star && m.Name == "" && m.Note == "" && len(m.Tags) == 0 }

// Marks keeps what users keep about sessions. Forgetting a session removes the marks of all users. Safe for concurrent
// use. It does not ask whether the reader may see a stream: its callers do.
type Marks interface {
	// Marks returns a reader's marks of streams, by stream. Those without one are left out.
	Marks(ctx context.Context, reader int64, streams []int64) (map[int64]Mark, error)
	// SetMark replaces a reader's mark of a stream; an empty one is removed. ErrNotFound when there is no such stream.
	SetMark(ctx context.Context, reader int64, m Mark) error
	// Tags lists a reader's tags, in their order.
	Tags(ctx context.Context, reader int64) ([]string, error)
}

const (
	maxMarkName = 200  // bytes
	maxMarkNote = 4000 // bytes
	maxTags     = 20
	maxTag      = 40 // bytes
)

// MarkError says what is wrong with a mark.
type MarkError string

func (e MarkError) Error() string { return string(e) }

// Tidy trims a mark, sorts its tags and drops doubles. A mark that is too long is a MarkError.
func (m *Mark) Tidy() error {
	m.Name, m.Note = strings.Join(strings.Fields(m.Name), " "), strings.TrimSpace(m.Note)
	var tags []string
	for _, t := range m.Tags {
		if t = strings.Join(strings.Fields(t), "-"); t != "" {
			tags = append(tags, t)
		}
	}
	slices.Sort(tags)
	m.Tags = slices.Compact(tags)
	switch {
	case len(m.Name) > maxMarkName:
		return MarkError("A name has at most 200 bytes.")
	case len(m.Note) > maxMarkNote:
		return MarkError("A note has at most 4000 bytes.")
	case len(m.Tags) > maxTags:
		return MarkError("A session has at most 20 tags.")
	}
	for _, t := range m.Tags {
		if len(t) > maxTag || strings.Contains(t, ",") {
			return MarkError("A tag has at most 40 bytes and no comma.")
		}
	}
	return nil
}
