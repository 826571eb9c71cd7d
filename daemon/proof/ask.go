package proof

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/redact"
)

// mostAsked is the largest number of transcripts in one request to a server.
const mostAsked = 200

// askServers collects what was read, and asks each server about many transcripts at once.
func (v *verifier) askServers(ctx context.Context, read <-chan *candidate) error {
	waiting := map[string][]*candidate{} // by destination
	for c := range read {
		dest := c.facts.Dest
		if waiting[dest] = append(waiting[dest], c); len(waiting[dest]) < mostAsked {
			continue
		}
		if err := v.ask(ctx, dest, waiting[dest]); err != nil {
			return err
		}
		waiting[dest] = nil
	}
	for _, dest := range slices.Sorted(maps.Keys(waiting)) {
		if err := v.ask(ctx, dest, waiting[dest]); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// ask asks a server about some transcripts, and compares each.
func (v *verifier) ask(ctx context.Context, dest string, list []*candidate) error {
	if len(list) == 0 {
		return nil
	}
	refs := make([]remote.Ref, len(list))
	for i, c := range list {
		refs[i] = v.ref(c)
	}
	digests, err := v.reader(dest).Digests(ctx, refs, false)
	if err != nil {
		return err
	}
	forgotten := map[string]bool{}
	if slices.Contains(digests, nil) {
		if forgotten, err = v.forgottenBy(ctx, dest); err != nil {
			return err
		}
	}
	for i, c := range list {
		if digests[i] == nil && isForgotten(c.report.SessionID, forgotten) {
			v.Rules.Forget(c.file.File.ID)
			c.report.Note = "forgotten"
			v.report.addExcluded(c.report)
			v.report.fileDone()
			continue
		}
		if err := v.compareUnmoved(ctx, c, *cmp.Or(digests[i], new(protocol.Digest))); err != nil {
			return err
		}
	}
	return nil
}

// ref names what a server shows of a transcript by default.
func (v *verifier) ref(c *candidate) remote.Ref {
	return remote.Ref{Session: c.report.SessionID, User: remote.Me, Machine: &v.Origin.Machine}
}

// forgottenBy returns the sessions that a server has to forget.
func (v *verifier) forgottenBy(ctx context.Context, dest string) (map[string]bool, error) {
	list, err := v.reader(dest).Forgotten(ctx)
	if err != nil && !remote.Is(err, remote.CodeNoReading) { // an older server forgets nothing
		return nil, err
	}
	names := map[string]bool{}
	for _, f := range list {
		names[f.SessionID] = true
	}
	return names, nil
}

// isForgotten reports whether a stream belongs to one of some sessions.
func isForgotten(stream string, sessions map[string]bool) bool {
	return slices.ContainsFunc(transcript.ForgetNames(stream), func(name string) bool { return sessions[name] })
}

// mostNamed is the largest number of missing attachments that a difference names.
const mostNamed = 5

// compareAttachments compares the attachments of transcripts on disk with what servers hold.
func (v *verifier) compareAttachments(ctx context.Context, files []tail.Tracked) error {
	for _, t := range files {
		f := v.facts[t.File.ID]
		if _, out := v.excluded[t.File.ID]; out || t.File.Kind != tail.Main || !f.Decided {
			continue
		}
		root, err := os.OpenRoot(filepath.Dir(t.File.Path)) // which may be a link
		if err != nil {
			continue // a folder that cannot be listed makes the delivery incomplete
		}
		err = v.compareFolder(ctx, root, &t, &f)
		root.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// compareFolder compares the attachments of one transcript.
func (v *verifier) compareFolder(ctx context.Context, root *os.Root, t *tail.Tracked, f *state.Routing) error {
	here, tooLarge, unread := v.Attachments.OnDisk(root, t.File, f)
	count := &v.report.Attachments
	count.TooLarge += tooLarge
	if len(here) == 0 && unread == nil {
		return nil
	}
	if !v.Servers.Takes(f.Dest, outbox.Blob) {
		count.Unproven += len(here)
		return nil
	}
	missing, refused, err := v.missingAttachments(ctx, root, here, t)
	if len(missing) > 0 && err == nil {
		// A file written after the delivery still has to be sent.
		if err := v.Attachments.Deliver(ctx, t.File.ID); err != nil && ctx.Err() != nil {
			return err
		}
		missing, refused, err = v.missingAttachments(ctx, root, here, t)
	}
	if err != nil {
		return err
	}
	count.Files += len(here)
	for i := range here {
		count.Bytes += here[i].Size
	}
	count.Missing += len(missing)
	count.Refused += refused
	report := reportOf(t, f)
	if unread != nil {
		v.report.Differences = append(v.report.Differences,
			*difference(report, "a file next to it cannot be read: "+unread.Error()))
	}
	if len(missing) > 0 {
		v.wrong.attachments[t.File.ID] = f.Dest
		v.report.Differences = append(v.report.Differences,
			*difference(report, "files next to it are not on the server as they are on disk: "+nameSome(missing)))
	}
	return nil
}

// nameSome lists the first of some names.
func nameSome(names []string) string {
	text := strings.Join(names[:min(len(names), mostNamed)], ", ")
	if more := len(names) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// missingAttachments names the attachments that the server does not hold byte for byte; it only counts those that the
// server refused.
func (v *verifier) missingAttachments(ctx context.Context, root *os.Root, here []projection.Attachment,
	t *tail.Tracked) (missing []string, refused int, err error) {
	f := v.facts[t.File.ID]
	ref := remote.Ref{Session: f.Stream.SessionID, User: remote.Me, Machine: &v.Origin.Machine}
	list, err := v.reader(f.Dest).Blobs(ctx, ref)
	if err != nil && !remote.Is(err, control.CodeNoSession) {
		return nil, 0, err
	}
	for i := range here {
		h := &here[i]
		held := func(b remote.Blob) bool { return b.Name == h.Name && b.SHA256 == h.SHA256 }
		switch {
		case slices.ContainsFunc(list, held):
		case v.deadAttachments[t.File.ID][h.Name] == h.SHA256:
			refused++
		default:
			explained, err := v.explained(ctx, root, h, otherwise{list, t, v.reader(f.Dest)})
			if err != nil {
				return nil, 0, err
			}
			if !explained {
				missing = append(missing, h.Name)
			}
		}
	}
	return missing, refused, nil
}

// otherwise is an attachment that the server may hold with other bytes than expected.
type otherwise struct {
	list   []remote.Blob
	file   *tail.Tracked
	reader *remote.Client
}

// explained reports whether the server holds an attachment unmasked, or masked by other rules.
func (v *verifier) explained(ctx context.Context, root *os.Root, h *projection.Attachment,
	has otherwise) (bool, error) {
	for _, b := range has.list {
		if b.Name != h.Name || b.Size != h.Size {
			continue
		}
		disk, err := root.ReadFile(path.Join(strings.TrimSuffix(filepath.Base(has.file.File.Path), ".jsonl"), h.Name))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil // it was just removed
		}
		if err != nil {
			return false, fmt.Errorf("read attachment: %w", err)
		}
		held, err := has.reader.Blob(ctx, b.SHA256, h.Size+1)
		switch {
		case remote.Is(err, control.CodeNoSession), remote.Is(err, remote.CodeNoReading):
			continue // an older server does not return files
		case err != nil:
			return false, err
		}
		f := v.facts[has.file.File.ID]
		proof := ProofOf(v.Masking.Proof(), v.Masking.For(f.Dest, f.Stream.Cwd))
		by := func(text []byte) ([]byte, []redact.Range) { return proof.Tokens.File(h.Name, text) }
		if _, ok := proof.explains(disk, held, by); ok {
			return true, nil
		}
	}
	return false, nil
}
