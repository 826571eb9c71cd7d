// Package proof compares the transcripts on disk with what servers hold of them: by digests, and where those differ
// line by line. It reads every file from byte 0 and applies the rules in force. It does not know how lines are
// delivered or how a server is reached.
package proof

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"sync"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/delivery"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/redact"
)

// Deps is what a comparison reads. Every field but Former is required.
type Deps struct {
	State       *state.DB
	Files       *tail.Tailer
	Servers     *delivery.Servers
	Rules       Rules
	Attachments Attachments
	Masking     Masking
	Origin      outbox.Origin // names this machine and its state at the servers
	Former      []string      // the names that this machine had before
	LineCap     int64         // bytes; a longer line was delivered as a digest
}

// Rules decides what is not delivered. The rules of one Run do not change.
type Rules interface {
	// Excluded are the transcripts that are not delivered, with the reasons.
	Excluded(facts map[tail.FileID]state.Routing) map[tail.FileID]string
	// LeavesOut reports whether a line of a file is not delivered. Two goroutines may call it at once.
	LeavesOut(f *tail.File, line []byte) bool
	// Forget notes that a server has forgotten a file's session: it is no longer delivered.
	Forget(id tail.FileID)
}

// Masking decides where secrets are masked.
type Masking interface {
	// For returns the masker for texts of a project, given its folder, on their way to a server; nil: no masking.
	For(dest, cwd string) *redact.Masker
	// Proof returns the masker that proves tokens, whether or not masking is on; nil without a key.
	Proof() *redact.Masker
}

// Attachments are the files next to transcripts.
type Attachments interface {
	// OnDisk hashes the attachments of a main transcript that are small enough to be sent, as a server gets them;
	// tooLarge counts the others. unread is why a file or folder cannot be read.
	OnDisk(root *os.Root, f tail.File, to *state.Routing) (files []projection.Attachment, tooLarge int, unread error)
	// Deliver returns when the attachments of a transcript, as they are on disk now, have left the outbox.
	Deliver(ctx context.Context, id tail.FileID) error
	// Requeue makes the next Deliver send all attachments of a transcript again.
	Requeue(ctx context.Context, dest string, id tail.FileID) error
}

// Options chooses what is compared.
type Options struct {
	Session string // only transcripts whose session begins with it; "" all
	Deep    bool   // past generations and vanished transcripts too
	// Incomplete is why not everything on disk was delivered before; "" if it was. If set, every file is compared to its
	// end on disk, and what follows the cursors counts as missing.
	Incomplete string
	Reason     string                       // of Incomplete, as in control.SyncResult
	Hint       string                       // what to do about it; "" when only the reason is known
	Waiting    int64                        // lines that were not delivered
	Delivered  *Delivered                   // nil when Incomplete is set
	Progress   func(control.VerifyProgress) // called from one goroutine at a time; may be nil
}

// verifier is one run of verify.
type verifier struct {
	Deps
	options Options
	report  *recorder

	facts    map[tail.FileID]state.Routing
	excluded map[tail.FileID]string // transcripts that are not delivered, with the reasons
	// deadLines are the lines of a stream that its server refused, each with the generation of the refusal.
	deadLines map[uint64]map[int64]uint32
	// deadAttachments are the attachments that a server refused: name to sha256.
	deadAttachments map[tail.FileID]map[string]string

	mu      sync.Mutex
	wrong   wrong                     // guarded by mu
	readers map[string]*remote.Client // guarded by mu; by destination, each of one database
}

// wrong is what a repair can send again.
type wrong struct {
	lines       map[string][]tail.FileID // transcripts with lines that differ, by destination
	attachments map[tail.FileID]string   // transcripts with attachments that differ, with their destinations
}

// run compares, and returns what differs and what of it a repair can send again. An error means that the comparison
// could not be finished.
func run(ctx context.Context, deps Deps, options Options) (r control.VerifyReport, repairs wrong, err error) {
	v := &verifier{
		Deps: deps, options: options, report: newRecorder(&options),
		deadLines: map[uint64]map[int64]uint32{}, deadAttachments: map[tail.FileID]map[string]string{},
		wrong: wrong{map[string][]tail.FileID{}, map[tail.FileID]string{}}, readers: map[string]*remote.Client{},
	}
	if v.facts, err = v.State.Files.Routings(ctx); err != nil {
		return r, repairs, err
	}
	if err := v.loadDeadLetters(ctx); err != nil {
		return r, repairs, err
	}
	if err := v.chooseStores(ctx); err != nil {
		return r, repairs, err
	}
	v.excluded = v.Rules.Excluded(v.facts)
	files := v.choose()
	if err := v.compareFiles(ctx, files); err != nil {
		return r, repairs, err
	}
	if err := v.compareAttachments(ctx, files); err != nil {
		return r, repairs, err
	}
	if options.Deep {
		if err := v.compareHistory(ctx); err != nil {
			return r, repairs, err
		}
	}
	return v.report.finish(&options), v.wrong, nil
}

// add records a compared transcript. diff is nil when nothing differs; otherwise a repair can send it again.
func (v *verifier) add(c *candidate, diff *control.FileDifference) {
	v.report.add(c.report, c.summary, diff)
	if diff == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wrong.lines[c.facts.Dest] = append(v.wrong.lines[c.facts.Dest], c.file.File.ID)
}

// chooseStores decides which database of each server is asked: the one that the lines were sent to. Two may answer in
// turn at one address, and half an answer of each looks like a server that has everything, or like one that lost it.
func (v *verifier) chooseStores(ctx context.Context) error {
	for _, f := range v.facts {
		if v.readers[f.Dest] != nil || f.Dest == "" {
			continue
		}
		store, err := v.Servers.Store(ctx, f.Dest)
		if err != nil {
			return err
		}
		v.readers[f.Dest] = v.Servers.Reader(f.Dest).Of(store)
	}
	return nil
}

// reader answers a client of the one database of a server that this run asks.
func (v *verifier) reader(dest string) *remote.Client {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.readers[dest] == nil {
		v.readers[dest] = v.Servers.Reader(dest).Of("")
	}
	return v.readers[dest]
}

// loadDeadLetters finds the lines and files that servers refused: they may be missing there.
func (v *verifier) loadDeadLetters(ctx context.Context) error {
	letters, err := v.State.DeadLetters.List(ctx)
	if err != nil {
		return err
	}
	for i := range letters {
		l := &letters[i]
		f, known := v.facts[tail.FileID(l.Stream.ID)]
		if known && f.Dest != l.Dest || !strings.HasPrefix(l.Stream.SessionID, v.options.Session) {
			continue // of a retired server, or not requested
		}
		switch {
		case l.Reason == outbox.ReasonDamaged: // not refused by a server: they count as missing
			continue
		case l.Reason == state.ReasonReplaced: // no longer on disk, so they excuse no current line
		case l.Batch.Kind == outbox.Blob:
			id := tail.FileID(l.Stream.ID)
			if v.deadAttachments[id] == nil {
				v.deadAttachments[id] = map[string]string{}
			}
			v.deadAttachments[id][l.Batch.Blob.Name] = l.Batch.Blob.SHA256
		case l.Batch.Items == 0:
			lines := v.deadLines[l.Stream.ID]
			if lines == nil {
				lines = map[int64]uint32{}
				v.deadLines[l.Stream.ID] = lines
			}
			lines[l.Line] = max(lines[l.Line], l.Batch.Generation)
		}
		v.report.Dead += int64(max(1, l.Batch.Entries))
	}
	return nil
}

// choose picks the transcripts on disk to compare, in the order of their paths.
func (v *verifier) choose() []tail.Tracked {
	var chosen []tail.Tracked
	session := v.options.Session
	files := v.Files.Files
	if d := v.options.Delivered; d != nil {
		files = func() []tail.Tracked { return d.files }
	}
	for _, t := range files() {
		name := v.facts[t.File.ID].Stream.SessionID
		if session != "" && !strings.HasPrefix(name, session) && !strings.HasPrefix(t.File.Name, session) {
			continue
		}
		if t.Gone != 0 {
			v.report.Vanished++
			continue
		}
		if f := v.facts[t.File.ID]; !f.Stream.Extended {
			v.report.Withheld += f.Withheld
		}
		chosen = append(chosen, t)
		v.report.at.BytesTotal += t.Cursor.Offset
	}
	v.report.at.FilesTotal = len(chosen)
	sort.Slice(chosen, func(i, j int) bool { return chosen[i].File.Path < chosen[j].File.Path })
	return chosen
}

// batchSize is how many bytes of masked texts one request masks, at least one text.
const batchSize = 4 << 20

// pass reads what a server has of one transcript, and has it masked.
type pass struct {
	reader *remote.Client
	masker *redact.Masker
	ref    remote.Ref
	dry    bool

	batch protocol.MaskRequest
	size  int // of the batch's texts
	found protocol.Masked
}

// run masks everything of the transcript, and returns how much there was to mask.
func (p *pass) run(ctx context.Context) (protocol.Masked, error) {
	for _, part := range []func(context.Context) error{p.lines, p.checkpoints, p.files} {
		if err := part(ctx); err != nil {
			return p.found, err
		}
	}
	return p.found, p.flush(ctx)
}

// change returns a text with its tokens; false when there is nothing to mask.
func change(text, masked []byte) (sum protocol.Hash, tokens []redact.Token, changed bool, err error) {
	tokens, only := redact.Changes(text, masked)
	if !only {
		return sum, nil, false, errors.New("a secret is masked by what is no token")
	}
	return sha256.Sum256(text), tokens, len(tokens) > 0, nil
}

// added notes that a text of a size joined the batch.
func (p *pass) added(ctx context.Context, size int) error {
	if p.size += size; p.size < batchSize {
		return nil
	}
	return p.flush(ctx)
}

// flush sends the batch.
func (p *pass) flush(ctx context.Context) error {
	b := p.batch
	p.batch, p.size = protocol.MaskRequest{Epoch: b.Epoch}, 0
	if p.dry || len(b.Lines)+len(b.Checkpoints)+len(b.Files) == 0 {
		return nil
	}
	b.Machine = *p.ref.Machine
	if _, err := p.reader.Mask(ctx, p.ref.Session, &b); err != nil {
		return fmt.Errorf("mask on the server: %w", err)
	}
	return nil
}

// lines masks the lines of every generation of every epoch.
func (p *pass) lines(ctx context.Context) error {
	all, err := p.reader.Digests(ctx, []remote.Ref{p.ref}, true)
	if err != nil || all[0] == nil { // forgotten meanwhile, or without lines
		return err
	}
	for _, e := range all[0].Epochs {
		p.batch.Epoch = e.Epoch
		for i := range e.Generations {
			if err := p.generation(ctx, e.Epoch, &e.Generations[i]); err != nil {
				return err
			}
		}
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// generation masks the lines that are stored in a generation, and the bytes that others replaced there.
func (p *pass) generation(ctx context.Context, epoch string, g *protocol.ViewDigest) error {
	ref, number := p.ref, g.Generation
	ref.Epoch, ref.Generation = epoch, &number
	file, err := p.reader.Raw(ctx, ref, true)
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 64<<10)
	for index := int64(0); ; index++ {
		line, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		last := err != nil
		if index >= g.RewoundTo {
			if err := p.line(ctx, number, index, bytes.TrimSuffix(line, []byte{'\n'})); err != nil {
				return err
			}
		}
		if last {
			break
		}
	}
	replaced, err := p.reader.Replaced(ctx, ref)
	for _, e := range replaced {
		if err == nil && e.Generation == number && e.Kind != "oversize" {
			err = p.line(ctx, number, e.Line, append(e.Record, e.Data...))
		}
	}
	return err
}

func (p *pass) line(ctx context.Context, generation, index int64, raw []byte) error {
	masked, ranges := p.masker.Line(raw)
	if len(ranges) == 0 {
		return nil
	}
	sum, tokens, changed, err := change(raw, masked)
	if err != nil || !changed {
		return err
	}
	p.found.Lines++
	p.batch.Lines = append(p.batch.Lines,
		protocol.LineMask{Generation: generation, Line: index, SHA256: sum, Tokens: tokens})
	return p.added(ctx, len(raw))
}
