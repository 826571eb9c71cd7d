package daemon

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/kv"
)

// TestUpgradeWithAnotherSpelling sends nothing again to a server that a state of schema 3 has under another spelling of
// its URL.
func TestUpgradeWithAnotherSpelling(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 20))
	w.start()
	w.sync()
	w.stop()
	requests := len(w.server.order)
	spellOldly(t, filepath.Join(w.cfg.StateDir, "state.db"), w.cfg.ServerURL+"//api/conversations")
	w.start()
	w.sync()
	if n := len(w.server.order); n != requests {
		t.Errorf("%d requests after the upgrade, want none", n-requests)
	}
	if s := w.status().Servers; len(s) != 1 || s[0].URL != w.cfg.ServerURL {
		t.Errorf("servers %+v", s)
	}
}

// spellOldly makes a state of schema 3 of one of today, with another URL of its only server.
func spellOldly(t *testing.T, path, url string) {
	t.Helper()
	b, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	err = b.Update(func(tx *bbolt.Tx) error {
		key := binary.BigEndian.AppendUint32(nil, 1)
		var row struct {
			URL     string         `json:"url"`
			Learned outbox.Learned `json:"learned"`
		}
		bucket := tx.Bucket([]byte("destinations"))
		if err := kv.UnsealJSON(1, key, bucket.Get(key), &row); err != nil {
			return err
		}
		row.URL = url
		v, err := kv.SealJSON(1, key, row)
		if err != nil {
			return err
		}
		if err := bucket.Put(key, v); err != nil {
			return err
		}
		meta := tx.Bucket([]byte("meta"))
		return errors.Join(meta.Put([]byte("schema"), []byte{0, 0, 0, 3}), meta.Delete([]byte("rows")))
	})
	if err != nil {
		t.Fatal(err)
	}
}
