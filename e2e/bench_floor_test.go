//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// floorEnv turns the test binary into the benchmark's floor: its value is the server's URL, a space, and the folder.
const floorEnv = "CCSHIP_E2E_FLOOR"

// floorMain posts every line of every transcript with no durability at all: two workers, 100 entries per POST, each
// line validated. It prints the seconds that took.
func floorMain() int {
	url, dir, _ := strings.Cut(os.Getenv(floorEnv), " ")
	begin := time.Now()
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*.jsonl"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	work := make(chan string)
	failed := make(chan error, 2)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for path := range work {
				if err := floorFile(url, path); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	for _, path := range paths {
		select {
		case work <- path:
		case err := <-failed:
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	close(work)
	workers.Wait()
	fmt.Println(time.Since(begin).Seconds())
	return 0
}

// floorFile posts one transcript.
func floorFile(url, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
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
		err := floorPost(url, &body)
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
			return err
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

func floorPost(url string, body *bytes.Buffer) error {
	r, err := http.NewRequest(http.MethodPost, url+"/api/conversations", bytes.NewReader(body.Bytes()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return errors.Join(err, answer.Body.Close())
}
