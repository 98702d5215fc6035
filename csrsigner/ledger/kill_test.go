package ledger

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// killDir is the environment of a child that is killed.
const killDir = "KILL_TEST_DIR"

// TestLedgerKilled kills a process in the midst of its writes: what it was told to be written is in the ledger of the next
// one, with its first key, and nothing is set aside.
func TestLedgerKilled(t *testing.T) {
	silent := logrus.New()
	silent.SetOutput(io.Discard)
	if dir := os.Getenv(killDir); dir != "" { // the child, until it is killed
		l := Open(dir, silent.WithField("service", "csrsigner"))
		for n := max(len(l.entries)-1, 0); ; n++ { // the last one again: it may be half
			if err := l.Enter(cluster.InstanceID(fmt.Sprintf("i-%d", n)), rules.Issue{Node: "n", Key: fmt.Sprint("key", n), At: noon}); err != nil {
				t.Fatal(err)
			}
			if err := l.Learn(rules.Issue{Node: fmt.Sprintf("n-%d", n), Key: "k", At: noon}); err != nil {
				t.Fatal(err)
			}
			fmt.Printf("entered %d\n", n)
		}
	}
	seed := drawn.Seed(t)
	random, dir, last := rand.New(rand.NewPCG(seed, 0)), t.TempDir(), -1
	for range 12 {
		child := exec.Command(os.Args[0], "-test.run=^TestLedgerKilled$")
		child.Env = append(os.Environ(), killDir+"="+dir)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if _, err := fmt.Sscanf(lines.Text(), "entered %d", &last); err != nil {
				t.Fatalf("the child says %q", lines.Text())
			}
			if random.IntN(8) == 0 {
				after := time.Duration(random.IntN(3000)) * time.Microsecond // anywhere in a write
				go func() {
					time.Sleep(after)
					_ = child.Process.Kill()
				}()
				_, _ = io.Copy(io.Discard, out)
				break
			}
		}
		_ = child.Wait() // it was killed
		l := Open(dir, silent.WithField("service", "csrsigner"))
		for n := range last + 1 {
			if i := l.Of(cluster.InstanceID(fmt.Sprintf("i-%d", n))); i == nil || i.Key != fmt.Sprint("key", n) || len(l.Granted(fmt.Sprintf("n-%d", n))) != 1 {
				t.Fatalf("of %d entries the one of %d is %+v", last+1, n, i)
			}
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 1 || !strings.HasSuffix(left[0], "joined.json") {
		t.Errorf("left are %v, %v", left, err)
	}
}

// TestSwappedLedger: another file of the state directory in the ledger's place is set aside and told, and not taken for a
// ledger in which nobody has joined.
func TestSwappedLedger(t *testing.T) {
	for name, text := range map[string]string{
		"attested.json":    `{"version":1,"attested":{"i-1":{"key":"k","at":"2026-11-21T12:00:00Z"}}}`,
		"nodecleaner.json": `{"version":1,"memory":{"seen":{}}}`,
		"state.json":       `{"version":1,"memory":{},"specs":{"i-1":"s"}}`,
		"a list":           `[]`,
		"nothing":          `{}`,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "joined.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		log := logrus.New()
		log.SetOutput(&said)
		Open(dir, log.WithField("service", "csrsigner"))
		aside, err := filepath.Glob(filepath.Join(dir, "joined.json.bad-*"))
		if err != nil || len(aside) != 1 || !strings.Contains(said.String(), "set aside as") {
			t.Errorf("%s: set aside %v, said %q", name, aside, said.String())
		}
	}
}
