package proof

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/protocol"
)

// checkpoints masks the texts of the transcript's checkpoints.
func (p *pass) checkpoints(ctx context.Context) error {
	list, err := p.reader.Checkpoints(ctx, p.ref)
	if err != nil {
		return notThere(err)
	}
	for _, c := range list {
		any := false
		for _, text := range append([]string{c.Summary, c.PortID}, c.ActiveFiles...) {
			masked, _ := p.masker.Text([]byte(text))
			sum, tokens, changed, err := change([]byte(text), masked)
			if err != nil {
				return err
			}
			if !changed {
				continue
			}
			any = true
			p.batch.Checkpoints = append(p.batch.Checkpoints, protocol.CheckpointMask{ID: c.ID, SHA256: sum, Tokens: tokens})
			if err := p.added(ctx, len(text)); err != nil {
				return err
			}
		}
		if any {
			p.found.Checkpoints++
		}
	}
	return nil
}

// notThere forgives that a transcript has nothing of a kind, or is forgotten meanwhile.
func notThere(err error) error {
	if remote.Is(err, control.CodeNoSession) {
		return nil
	}
	return err
}

// files masks the files next to the transcript, and every version of its documents.
func (p *pass) files(ctx context.Context) error {
	list, err := p.reader.Blobs(ctx, p.ref)
	if notThere(err) != nil {
		return err
	}
	done := map[string]bool{}
	for _, b := range list {
		if done[b.SHA256] {
			continue
		}
		done[b.SHA256] = true
		content, err := p.reader.Blob(ctx, b.SHA256, b.Size)
		if err == nil {
			err = p.file(ctx, b.Name, b.SHA256, content)
		}
		if notThere(err) != nil {
			return err
		}
	}
	versions, err := p.reader.DocumentVersions(ctx, p.ref)
	if notThere(err) != nil {
		return err
	}
	for _, v := range versions {
		if done[v.SHA256] || !v.Stored || v.SHA256 == "" {
			continue
		}
		done[v.SHA256] = true
		content, err := v.Content(ctx)
		if err == nil {
			err = p.file(ctx, v.Path, v.SHA256, content)
		}
		if notThere(err) != nil {
			return err
		}
	}
	return nil
}

// file masks a file's content as it is masked on its way to a server.
func (p *pass) file(ctx context.Context, name, sum string, content []byte) error {
	size := int64(len(content))
	masked, err := io.ReadAll(io.NewSectionReader(p.masker.ReaderAt(name, bytes.NewReader(content), size), 0, size))
	if err != nil {
		return err
	}
	was, tokens, changed, err := change(content, masked)
	if err != nil || !changed {
		return err
	}
	if hex.EncodeToString(was[:]) != sum {
		return fmt.Errorf("the server sent a file with another sha256 than %s", sum)
	}
	p.found.Files++
	p.batch.Files = append(p.batch.Files, protocol.FileMask{SHA256: was, Tokens: tokens})
	return p.added(ctx, len(content))
}
