package proof

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/transcript/redact"
)

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
