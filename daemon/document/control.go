package document

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/state"
)

// List returns the documents linked to a session, given its full name.
func (t *Tracker) List(ctx context.Context, session string) (control.Documents, error) {
	a := control.Documents{SchemaVersion: control.SchemaVersion, Session: session, Documents: []control.Document{}}
	loc, err := t.Locator.Locate(ctx, session)
	if err != nil {
		return a, err
	}
	a.Cwd = loc.Cwd
	for _, d := range t.list(session, true) {
		if d.problem == "" {
			d.problem = loc.problem()
		}
		if d.problem == "" && d.failures > 0 && d.Dest == "" {
			d.problem = notSentProblem
		}
		a.Documents = append(a.Documents, control.Document{
			Path: d.Path, AddedAt: time.UnixMilli(d.AddedAt).UTC(), ChangedAt: time.UnixMilli(d.ChangedAt).UTC(),
			Version: d.Version, Size: d.Size, SHA256: d.SHA256, Deleted: d.Deleted, TooLarge: d.TooLarge, Problem: d.problem,
		})
	}
	return a, nil
}

// Link links a file to a session for the user, and returns the linked documents. req.Session is the full name.
func (t *Tracker) Link(ctx context.Context, req control.DocumentRequest) (control.Documents, error) {
	if err := t.link(ctx, userRequest(req)); err != nil {
		return control.Documents{}, controlError(err)
	}
	t.noteActivity(req.Session, nil)
	return t.List(ctx, req.Session)
}

// Unlink ends a link for the user, and returns the linked documents. req.Session is the full name.
func (t *Tracker) Unlink(ctx context.Context, req control.DocumentRequest) (control.Documents, error) {
	if err := t.unlink(ctx, userRequest(req)); err != nil {
		return control.Documents{}, controlError(err)
	}
	t.noteActivity(req.Session, nil)
	return t.List(ctx, req.Session)
}

func userRequest(req control.DocumentRequest) linkRequest {
	return linkRequest{
		session: req.Session, base: req.Base, path: req.Path, by: byUser, private: req.AllowSecret, line: -1,
	}
}

// controlError turns a refusal into an error of the control socket. It returns other errors as they are.
func controlError(err error) error {
	if r, ok := errors.AsType[*refusedError](err); ok {
		return control.BadDocument(r.Message, r.Hint)
	}
	return err
}

// maxAnswers bounds how many answers are remembered as used.
const maxAnswers = 4096

// answers tells the answers of our own ccship-mcp in a transcript from forged ones, which another tool or a text that
// Claude read may contain. ccship-mcp gets a nonce for each answer over the control socket, which only this user can
// use. A nonce carries an HMAC of the request, so that it survives a restart. It is valid for one place in one
// transcript.
type answers struct {
	key []byte // immutable

	mu   sync.Mutex
	used map[string]answerPlace // by nonce; guarded by mu
}

// answerPlace is where an answer was found.
type answerPlace struct {
	session string
	line    int64
}

// loadAnswers reads the key of the nonces from the state, and makes it first if there is none.
func loadAnswers(ctx context.Context, db *state.DB) (*answers, error) {
	kept, err := state.LoadPersisted[[]byte](ctx, db, "link_answers")
	if kept == nil {
		return nil, fmt.Errorf("read key of link answers: %w", err)
	}
	err = kept.Change(ctx, func(old []byte) ([]byte, bool) {
		if len(old) == sha256.Size {
			return old, false
		}
		fresh := make([]byte, sha256.Size)
		_, _ = rand.Read(fresh) // never fails
		return fresh, true
	})
	if err != nil {
		return nil, fmt.Errorf("keep key of link answers: %w", err)
	}
	return &answers{key: kept.Get(), used: map[string]answerPlace{}}, nil
}

// issue returns a nonce for an answer.
func (a *answers) issue(link bool, path string) string {
	random := rand.Text()
	return random + "." + a.sum(random, link, path)
}

func (a *answers) sum(random string, link bool, path string) string {
	h := hmac.New(sha256.New, a.key)
	fmt.Fprintf(h, "%s\n%t\n%s", random, link, path)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// take reports whether an answer found in a transcript was issued, and was not found elsewhere before. The same place
// may be read again.
func (a *answers) take(nonce string, link bool, path string, at answerPlace) bool {
	random, sum, _ := strings.Cut(nonce, ".")
	if !hmac.Equal([]byte(sum), []byte(a.sum(random, link, path))) {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if before, ok := a.used[nonce]; ok {
		return before == at
	}
	if len(a.used) >= maxAnswers {
		clear(a.used) // a second use only links the same file again
	}
	a.used[nonce] = at
	return true
}

// Answer returns a nonce that makes an answer of ccship-mcp, to link or unlink a file, valid in a transcript.
func (t *Tracker) Answer(link bool, path string) string { return t.answers.issue(link, path) }
