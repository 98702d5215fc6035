package flight

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func TestRecordKeepsChangesWithinBudget(t *testing.T) {
	r := New(2000)
	for i := range 100 {
		for range 3 { // the same plan again is not a new round
			text := fmt.Sprint("plan ", i)
			if r.Same(uint64(i)) {
				continue
			}
			packed, err := Pack("v1", cluster.Snapshot{Stale: fmt.Sprint("n", i)}, nil, nil, nil, nil, text)
			if err != nil {
				t.Fatal(err)
			}
			r.Keep(packed, uint64(i))
		}
	}
	var b bytes.Buffer
	if _, err := r.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 2000 {
		t.Errorf("kept %d bytes, budget 2000", b.Len())
	}
	rounds, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if len(rounds) == 0 || rounds[len(rounds)-1].Plan != "plan 99" || rounds[len(rounds)-1].Snapshot.Stale != "n99" {
		t.Fatalf("last round = %+v, want plan 99", rounds)
	}
	for i := 1; i < len(rounds); i++ {
		if rounds[i].Plan == rounds[i-1].Plan {
			t.Errorf("rounds %d and %d have one plan", i-1, i)
		}
	}
}

func TestReadSaysWhereAFileIsTorn(t *testing.T) {
	var whole []byte
	for i := range 3 {
		packed, err := Pack("v1", cluster.Snapshot{}, nil, nil, nil, nil, fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		whole = append(whole, packed...)
	}
	rounds, err := Read(bytes.NewReader(whole[:len(whole)-20]))
	if len(rounds) != 2 || err == nil || !strings.Contains(err.Error(), "round 3") {
		t.Errorf("%d rounds, %v", len(rounds), err)
	}
	if _, err := Read(strings.NewReader("not gzip")); err == nil {
		t.Error("no gzip was read")
	}
}

func TestStoreIsBoundedAndPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "flight")
	s := Store{Dir: dir, Files: 5, Bytes: 35}
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for i := range 20 {
		if err := s.Write(at.Add(time.Duration(i)*time.Second), []byte("0123456789")); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 || entries[2].Name() != "round-20261121T120019.000Z.json.gz" {
		t.Errorf("%v, %v: want the 3 newest, which have no more than 35 bytes", entries, err)
	}
	info, err := entries[0].Info()
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: want 0600", info.Mode(), err)
	}
	s.Files = 2
	if err := s.Write(at.Add(time.Minute), make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%v: want the newest alone, however large", entries)
	}
}
