package kit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// PostFloor sends transcripts with no durability at all: the least that any program does that reads, validates and
// posts lines. What a program costs is compared with it. It sends those below dir: two workers, 100 entries a request,
// each line validated. Files count as one transcript each, whatever their place.
func PostFloor(url, dir string) error {
	var paths []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && filepath.Ext(path) == ".jsonl" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("find transcripts: %w", err)
	}
	work := make(chan string, len(paths))
	for _, path := range paths {
		work <- path
	}
	close(work)
	var workers sync.WaitGroup
	failed := make(chan error, 2)
	for range 2 {
		workers.Go(func() {
			for path := range work {
				if err := postFile(url, path); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	workers.Wait()
	close(failed)
	return <-failed
}

// postFile posts one transcript.
func postFile(url, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open transcript: %w", err)
	}
	defer f.Close()
	lines := bufio.NewReaderSize(f, 1<<20)
	session := strings.TrimSuffix(filepath.Base(path), ".jsonl")
	var body bytes.Buffer
	count, index := 0, 0
	flush := func() error {
		if count == 0 {
			return nil
		}
		body.WriteString("]}")
		err := postLines(url, &body)
		body.Reset()
		count = 0
		return err
	}
	for ; ; index++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return flush()
		}
		if err != nil {
			return fmt.Errorf("read transcript: %w", err)
		}
		if !json.Valid(line) {
			continue
		}
		if count == 0 {
			fmt.Fprintf(&body, `{"project_hash":"floor","session_id":%q,"entries":[`, session)
		} else {
			body.WriteByte(',')
		}
		body.WriteString(`{"line_index":`)
		body.WriteString(strconv.Itoa(index))
		body.WriteByte(',')
		body.Write(line[1 : len(line)-1])
		if count++; count == 100 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
}

func postLines(url string, body *bytes.Buffer) error {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url+"/api/conversations",
		bytes.NewReader(body.Bytes()))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("post lines: %w", err)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return errors.Join(err, answer.Body.Close())
}
