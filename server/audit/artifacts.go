package audit

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ccship/ccship/server"
)

const (
	// maxFile is the largest document or attachment that is searched, in bytes. Larger ones are counted.
	maxFile      = 16 << 20
	scanPageSize = 100
)

// everything sees what all users have.
var everything = server.Scope{All: true}

// artifacts searches the checkpoints, all versions of the documents, and the attachments of a transcript.
func (s *scanner) artifacts(ctx context.Context, store scanStore, x server.Session) error {
	ref := server.Ref{Stream: x.ID}
	at := SecretFinding{Session: x, Line: -1}
	err := s.checkpoints(ctx, store, ref, at)
	if err == nil {
		err = s.documents(ctx, store, ref, at)
	}
	if err == nil {
		err = s.attachments(ctx, store, ref, at)
	}
	if errors.Is(err, server.ErrNotFound) { // forgotten meanwhile
		return nil
	}
	return err
}

func (s *scanner) checkpoints(ctx context.Context, store scanStore, ref server.Ref, at SecretFinding) error {
	for q := (server.CheckpointQuery{Ref: &ref, Limit: scanPageSize}); ; {
		page, err := store.Checkpoints(ctx, everything, q)
		if err != nil {
			return err
		}
		for _, c := range page.List {
			at.Place = "checkpoint " + c.ID
			_, ranges := s.masker.Text([]byte(c.Summary))
			s.report(at, ranges)
			s.read.Bytes += int64(len(c.Summary))
		}
		if q.After = page.Next; q.After == "" {
			return nil
		}
	}
}

func (s *scanner) documents(ctx context.Context, store scanStore, ref server.Ref, at SecretFinding) error {
	list, err := store.Documents(ctx, everything, ref)
	if err != nil {
		return err
	}
	for _, d := range list {
		for p := (server.VersionPage{Limit: scanPageSize}); ; {
			page, err := store.Versions(ctx, everything, ref, d.Path, p)
			if err != nil {
				return err
			}
			for _, v := range page.List {
				_, content, err := store.Content(ctx, everything, ref, d.Path, v.N)
				if errors.Is(err, server.ErrNoContent) {
					continue
				}
				at.Place = fmt.Sprintf("document %s, version %d", d.Path, v.N)
				if err == nil {
					err = s.file(at, d.Path, v.Size, content)
				}
				if err != nil {
					return err
				}
			}
			if p.Before = page.Next; p.Before == 0 {
				break
			}
		}
	}
	return nil
}

func (s *scanner) attachments(ctx context.Context, store scanStore, ref server.Ref, at SecretFinding) error {
	list, err := store.Blobs(ctx, everything, ref)
	if err != nil {
		return err
	}
	for _, b := range list {
		_, content, err := store.BlobContent(ctx, everything, b.SHA256)
		at.Place = "attachment " + b.Name
		if err == nil {
			err = s.file(at, b.Name, b.Size, content)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// file searches a file, unless it is too large or no text.
func (s *scanner) file(at SecretFinding, path string, size int64, content io.Reader) error {
	if size > maxFile {
		s.read.Skipped++
		return nil
	}
	text, err := io.ReadAll(content)
	if err != nil {
		return fmt.Errorf("read %s: %w", at.Place, err)
	}
	s.read.Files++
	s.read.Bytes += int64(len(text))
	_, ranges := s.masker.File(path, text)
	s.report(at, ranges)
	return nil
}
