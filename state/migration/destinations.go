package migration

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/kv"
)

// normalizeDestinations is the step from schema 3 to 4: it gives every server the spelling of outbox.NormalizeURL.
// Otherwise a server with another spelling would be a new server after the upgrade, and get every file again.
func normalizeDestinations(tx *kv.RawTx, fileRow DestinationOf) error {
	urls, learned, err := oldDestinations(tx)
	if err != nil {
		return err
	}
	files, err := filesByDestination(tx, fileRow)
	if err != nil {
		return err
	}
	renamed := normalizedURLs(urls, files)
	bucket := tx.Bucket([]byte("destinations"))
	for id, url := range renamed {
		key := binary.BigEndian.AppendUint32(nil, id)
		v, err := kv.SealJSON(1, key, map[string]any{"url": url, "learned": learned[id]})
		if err != nil {
			return err
		}
		if err := bucket.Put(key, v); err != nil {
			return fmt.Errorf("rename a destination: %w", err)
		}
	}
	return normalizeDocuments(tx)
}

// oldDestinations returns the URL of every destination, and what was learned of it as it is stored.
func oldDestinations(tx *kv.RawTx) (urls map[uint32]string, learned map[uint32]json.RawMessage, err error) {
	urls, learned = map[uint32]string{}, map[uint32]json.RawMessage{}
	err = tx.Bucket([]byte("destinations")).ForEach(func(k, v []byte) error {
		var row struct {
			URL     string
			Learned json.RawMessage
		}
		if len(k) != 4 {
			return fmt.Errorf("%w: destination key of %d bytes", kv.ErrCorrupt, len(k))
		}
		if err := kv.UnsealJSON(1, k, v, &row); err != nil {
			return fmt.Errorf("read destination: %w", err)
		}
		id := binary.BigEndian.Uint32(k)
		urls[id], learned[id] = row.URL, row.Learned
		return nil
	})
	return urls, learned, err
}

// filesByDestination counts the files whose lines go to each destination.
func filesByDestination(tx *kv.RawTx, fileRow DestinationOf) (map[uint32]int, error) {
	n := map[uint32]int{}
	err := tx.Bucket([]byte("files")).ForEach(func(k, v []byte) error {
		dest, err := fileRow(k, v)
		n[dest]++
		return err
	})
	return n, err
}

// normalizedURLs returns the destinations that get another URL. If several spellings of one server were in use, the
// one that most files go to gets the server's URL. Another one keeps a spelling of its own: what is queued for it is
// still sent, and no file is read again for it.
func normalizedURLs(urls map[uint32]string, files map[uint32]int) map[uint32]string {
	same := map[string][]uint32{}
	for id, url := range urls {
		one := normalizedDestination(url)
		same[one] = append(same[one], id)
	}
	renamed := map[uint32]string{}
	for url, ids := range same {
		main := slices.MaxFunc(ids, func(a, b uint32) int {
			if d := files[a] - files[b]; d != 0 {
				return d
			}
			return int(a) - int(b)
		})
		if urls[main] == url {
			continue
		}
		for _, id := range ids {
			if urls[id] == url {
				renamed[id] = urls[main]
			}
		}
		renamed[main] = url
	}
	return renamed
}

// normalizedDestination gives the URL of a destination its one spelling. What follows a # is the folder of a project;
// what is no URL stays as it is.
func normalizedDestination(dest string) string {
	url, dir, ofProject := strings.Cut(dest, "#")
	_, url, err := outbox.NormalizeURL(url)
	if err != nil {
		return dest
	}
	if ofProject {
		url += "#" + dir
	}
	return url
}

// normalizeDocuments does the same to the destinations of documents. Other rows of their bucket have none.
func normalizeDocuments(tx *kv.RawTx) error {
	bucket := tx.Bucket([]byte("documents"))
	changed := map[string][]byte{}
	err := bucket.ForEach(func(k, v []byte) error {
		row := map[string]json.RawMessage{}
		if err := kv.UnsealJSON(1, k, v, &row); err != nil {
			return fmt.Errorf("read document: %w", err)
		}
		var was string
		isText := row["dest"] != nil && json.Unmarshal(row["dest"], &was) == nil
		if !isText || normalizedDestination(was) == was {
			return nil
		}
		now, err := json.Marshal(normalizedDestination(was))
		if err != nil {
			return fmt.Errorf("encode document: %w", err)
		}
		row["dest"] = now
		changed[string(k)], err = kv.SealJSON(1, bytes.Clone(k), row)
		return err
	})
	if err != nil {
		return err
	}
	for k, v := range changed {
		if err := bucket.Put([]byte(k), v); err != nil {
			return fmt.Errorf("rename a destination: %w", err)
		}
	}
	return nil
}
