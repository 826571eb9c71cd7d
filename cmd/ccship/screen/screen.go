// Package screen is what `ccship` without arguments shows on a terminal: a box to search in, the sessions that were
// found, and the conversation at the place. A session is resumed, opened in the browser, copied or exported from it. It
// asks the library; while the server is away, it shows what is on disk. It does not know the verbs.
package screen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/ccship/ccship/daemon/library"
)

// Desk is what a screen works with.
type Desk struct {
	Library *library.Library
	Folder  string // the current one
	Project string // its project
	// Browse shows an address of the viewer in a browser, and returns a line to show.
	Browse func(ctx context.Context, address string) (string, error)
	Notice func(ctx context.Context) string // what waits for the user, in one line; "": nothing
	Now    func() time.Time                 // nil: time.Now
}

// Chosen is the session that the person wants to go on with. It is on this disk. The zero value: none.
type Chosen struct {
	Session string
	Folder  string           // to resume it in
	Brought *library.Resumed // nil: it was here already
}

// Open shows the screen on a terminal until the person leaves it or chooses a session. The first frame does not wait
// for the desk.
func Open(ctx context.Context, desk func(context.Context) (Desk, error), colours bool, in io.Reader,
	out io.Writer) (Chosen, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newModel(ctx, desk, colours)
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out),
		tea.WithEnvironment(os.Environ())).Run()
	interrupted := errors.Is(err, tea.ErrInterrupted) || ctx.Err() != nil
	cancel()
	m.acting.Lock() // what was being brought or written is cleaned up
	switch {
	case interrupted:
		return Chosen{}, nil
	case err != nil:
		return Chosen{}, fmt.Errorf("show screen: %w", err)
	}
	return m.chosen, m.failed
}
