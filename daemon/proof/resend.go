package proof

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// Resend makes the transcripts of a session and its agents, or all transcripts, continue after the lines that their
// servers hold as they are on disk.
func (s *Service) Resend(ctx context.Context, req control.ResendRequest) (control.ResendResult, error) {
	all := newResult()
	if req.All == (req.Session != "") {
		return all, control.Usage("name a session, or all of them with --all", "`ccship list` lists them")
	}
	session := ""
	if !req.All {
		var err error
		if session, err = s.session(req.Session); err != nil {
			return all, err
		}
	}
	deps := s.Deps()
	facts, err := deps.State.Files.Routings(ctx)
	if err != nil {
		return all, err
	}
	chosen := resendable{deps: deps, facts: facts, excluded: deps.Rules.Excluded(facts), fromStart: req.FromStart}
	byDest := chosen.choose(session, &all)
	if session != "" && len(byDest) == 0 {
		return all, nothingToSend(session, &all)
	}
	for _, dest := range slices.Sorted(maps.Keys(byDest)) {
		some, err := s.Repairer.Repair(ctx, dest, byDest[dest], req.FromStart)
		merge(&all, some)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// session returns the full name of a session. An unknown session is a usage error.
func (s *Service) session(name string) (string, error) {
	whole, err := s.Session(name)
	if known, ok := errors.AsType[*control.Error](err); ok && known.Code == control.CodeNoSession {
		return "", control.Usage(known.Message, known.Hint)
	}
	return whole, err
}

func nothingToSend(session string, r *control.ResendResult) error {
	if len(r.Skipped) > 0 {
		return control.Usage("session "+session+" is not sent again: "+r.Skipped[0].Why,
			"`ccship exclude` says what is left out")
	}
	return control.Usage("no transcript of session "+session+" is on disk",
		"`ccship restore` brings it back from the server")
}

// resendable selects the transcripts that can be sent again.
type resendable struct {
	deps      Deps
	facts     map[tail.FileID]state.Routing
	excluded  map[tail.FileID]string
	fromStart bool
}

// choose returns the transcripts on disk of a session, or all of them for "", by destination. It lists in r those that
// cannot be sent again.
func (c *resendable) choose(session string, r *control.ResendResult) map[string][]tail.FileID {
	byDest := map[string][]tail.FileID{}
	for _, t := range c.deps.Files.Files() {
		f := c.facts[t.File.ID]
		name := f.Stream.SessionID
		if t.Gone != 0 || session != "" && !slices.Contains(transcript.ForgetNames(name), session) {
			continue
		}
		if why := c.why(t.File.ID, &f); why != "" {
			r.Skipped = append(r.Skipped, control.SkippedFile{SessionID: name, Path: t.File.Path, Why: why})
			continue
		}
		byDest[f.Dest] = append(byDest[f.Dest], t.File.ID)
	}
	return byDest
}

// why returns why a transcript cannot be sent again; "" when it can.
func (c *resendable) why(id tail.FileID, f *state.Routing) string {
	switch why, excluded := c.excluded[id]; {
	case excluded:
		return why
	case !f.Decided:
		return detailUndelivered
	case !c.fromStart && !c.deps.Servers.SpeaksExtension(f.Dest):
		return "a plain server cannot be asked what it has; --from-start sends everything again"
	}
	return ""
}

func newResult() control.ResendResult {
	return control.ResendResult{SchemaVersion: control.SchemaVersion, Resent: []control.ResentTranscript{}}
}

// merge adds what was done for one server.
func merge(all *control.ResendResult, some control.ResendResult) {
	all.Transcripts += some.Transcripts
	all.Lines += some.Lines
	all.Bytes += some.Bytes
	all.Resent = append(all.Resent, some.Resent...)
	all.Skipped = append(all.Skipped, some.Skipped...)
}
