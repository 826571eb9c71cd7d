package main

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/ccship/ccship/transcript/redact"
)

// part is one file of an archive. Where its text could not be had, Err says why, and stands there instead.
type part struct {
	Name string
	Text string
	Err  error
}

// folder is the folder that the parts are in.
const folder = "ccship-report"

// write makes the archive, gzipped tar of mode 0600, at a path where nothing is yet. What it returns says what the
// archive holds, a line a part. On an error nothing is left at the path.
func write(file string, now time.Time, hide *names, parts ...part) (contents []string, err error) {
	masker, err := redact.New(redact.NewKey()) // tokens tell nothing: the key is not kept
	if err != nil {
		return nil, fmt.Errorf("load rules of masking: %w", err)
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = out.Close()
			_ = os.Remove(file)
		}
	}()
	packed := gzip.NewWriter(out)
	archive := tar.NewWriter(packed)
	for _, p := range parts {
		text := p.Text
		if p.Err != nil {
			text = strings.TrimRight("not to be had: "+p.Err.Error()+"\n"+text, "\n") + "\n"
		}
		masked, _ := masker.Line([]byte(hide.From(text)))
		head := &tar.Header{Name: path.Join(folder, p.Name), Mode: 0o600, Size: int64(len(masked)), ModTime: now}
		if err := archive.WriteHeader(head); err != nil {
			return nil, fmt.Errorf("write %s: %w", p.Name, err)
		}
		if _, err := archive.Write(masked); err != nil {
			return nil, fmt.Errorf("write %s: %w", p.Name, err)
		}
		contents = append(contents, fmt.Sprintf("%-12s  %d bytes", p.Name, len(masked)))
	}
	for _, closing := range []io.Closer{archive, packed, out} {
		if err := closing.Close(); err != nil {
			return nil, fmt.Errorf("write archive: %w", err)
		}
	}
	return contents, nil
}
