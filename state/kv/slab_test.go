package kv

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// putInRoom puts a row of a size in memory of the transaction, filled with its key.
func putInRoom(tx *Tx, o *owner, key string, size int) error {
	v := append(tx.Alloc(sealSize+size), NewSealed(1, 0)...)
	v = Seal([]byte(key), append(v, bytes.Repeat([]byte(key), size)[:size]...))
	tx.Changes(o).(*changes).put[key] = size
	return tx.Put("put row", tx.Bucket(rows), []byte(key), v)
}

// Values in memory that is used again stay as they were put: those of the same transaction, of those before, and also
// after one that was rolled back.
func TestRoom(t *testing.T) {
	s := open(t, Options{})
	sizes := []int{0, 1, 100, 5000, slabMost - 10, slabMost, slabMost + 1, 3 * slabSize}
	want := map[string]string{}
	for round := range 5 {
		err := s.Update(t.Context(), 0, func(tx *Tx) error {
			for i := range 3 * len(sizes) {
				key, size := fmt.Sprintf("%d-%02d;", round, i), sizes[i%len(sizes)]
				if err := putInRoom(tx, s.owner, key, size); err != nil {
					return err
				}
				want[key] = string(bytes.Repeat([]byte(key), size)[:size])
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Update(t.Context(), 0, func(tx *Tx) error {
			return errors.Join(putInRoom(tx, s.owner, "lost", 100), errInjected)
		})
		if !errors.Is(err, errInjected) {
			t.Fatal(err)
		}
		got := map[string]string{}
		for name, v := range dump(t, s) {
			if key, ok := bytes.CutPrefix([]byte(name), []byte(rows+"/")); ok {
				content, err := Unseal(key, []byte(v), 1)
				if err != nil {
					t.Fatalf("row %s: %v", key, err)
				}
				got[string(key)] = string(content)
			}
		}
		if !cmp.Equal(want, got) {
			t.Fatalf("round %d: the rows are not those that were put", round)
		}
	}
}
