package attest

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
)

func silent() *logrus.Entry {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return l.WithField("service", "attest")
}

// TestLedgerKeepsTheFirstKey: of two keys that ask at once for one instance one is the
// first for both, and it is on disk before either is told.
func TestLedgerKeepsTheFirstKey(t *testing.T) {
	dir := t.TempDir()
	l := openLedger(dir, silent())
	now := time.Now()
	var group sync.WaitGroup
	for n := range 50 {
		id := fmt.Sprintf("i-%08x", n)
		var firsts [2]string
		for k := range firsts {
			group.Go(func() {
				first, err := l.enter(id, fmt.Sprint("key", k), now)
				if err != nil {
					t.Error(err)
				}
				if onDisk := openLedger(dir, silent()).key(id); onDisk != first {
					t.Errorf("%s: %q is on disk, %q was told", id, onDisk, first)
				}
				firsts[k] = first
			})
		}
		defer func() {
			if firsts[0] != firsts[1] || firsts[0] == "" {
				t.Errorf("%s: %q", id, firsts)
			}
		}()
	}
	group.Wait()
	if _, err := l.enter("i-later", "key", now.Add(ledgerKeep+time.Hour)); err != nil || l.key("i-00000001") != "" || l.key("i-later") != "key" {
		t.Errorf("after its time: %v, %v", err, l.keys)
	}
}

// TestLedgerThatCannotBeWritten: who is not on disk gets no token.
func TestLedgerThatCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	l := openLedger(dir, silent())
	if first, err := l.enter("i-00000001", "key", time.Now()); err == nil {
		t.Errorf("entered with %q in a directory that is not there", first)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if first, err := l.enter("i-00000001", "other", time.Now()); err != nil || first != "other" {
		t.Errorf("after that: %q, %v", first, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "attested.json"), []byte("{torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if openLedger(dir, silent()).key("i-00000001") != "" {
		t.Error("a torn file was believed")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "attested.json*bad*")); len(left) != 1 {
		t.Errorf("the torn file is not set aside: %v", left)
	}
}
