package plan

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/internal/flight"
)

var keep = flag.String("keep", "", "write the world of someWorld's two seeds (A,B), or of replaceWorld's (replace:A,B), to testdata/worlds, where TestFoundWorlds finds it")

// fileOf is where a world is kept, in the flight recorder's format: what `status --record` has
// written of a cluster can be put there as it is.
func fileOf(name string) string { return filepath.Join("testdata/worlds", name+".json.gz") }

// TestFoundWorlds holds the worlds in which something was once found against everything that
// must always be true. They are kept as data: another draw in someWorld makes other worlds of
// all seeds. A fuzzing worker writes two seeds to testdata/fuzz/FuzzDecide;
// `go test ./agent/plan -run TestFoundWorlds -keep A,B` makes a world of them; FuzzDecide also draws replaceWorld: -keep replace:A,B.
func TestFoundWorlds(t *testing.T) {
	if *keep != "" {
		var a, b uint64
		seeds, replace := strings.CutPrefix(*keep, "replace:")
		if _, err := fmt.Sscanf(seeds, "%d,%d", &a, &b); err != nil {
			t.Fatalf("-keep %s: write two seeds: A,B or replace:A,B", *keep)
		}
		world, name := someWorld, fmt.Sprintf("%d-%d", a, b)
		if replace {
			world, name = replaceWorld, "replace-"+name
		}
		s, m, p := world(rand.New(rand.NewPCG(a, b)))
		writeRounds(t, fileOf(name), flight.Round{Format: flight.Format, At: s.Now, Snapshot: s, Memory: text(t, m), Policy: text(t, p)})
	}
	if seeds, _ := filepath.Glob("testdata/fuzz/FuzzDecide/*"); len(seeds) > 0 {
		t.Errorf("%v are seeds, not worlds: keep what they draw (-keep A,B) and remove them", seeds)
	}
	files, err := filepath.Glob(fileOf("*"))
	if err != nil || len(files) < 56 {
		t.Fatalf("%d worlds, %v", len(files), err)
	}
	for i, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json.gz"), func(t *testing.T) {
			for _, r := range readRounds(t, file) {
				m, p := parts(t, r)
				check(t, r.Snapshot, m, p, uint64(i))
			}
		})
	}
}

// parts decodes the memory and the policy of a round. Machines that come first for nodes are a count today: what a memory
// ordered by a node's name is no part of it any more.
func parts(t *testing.T, r flight.Round) (m decision.Memory, p decision.Policy) {
	t.Helper()
	fields := map[string]json.RawMessage{}
	strict(t, r.Memory, &fields)
	delete(fields, "replacements")
	strict(t, text(t, fields), &m)
	strict(t, r.Policy, &p)
	return m, p
}

// strict refuses a field that its type has no more: a world that lost half of what it is about
// would still be a world.
func strict(t *testing.T, data []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatal(err)
	}
}

// today is a recorded round in the words of today: no decision has read the last renewal of a Node's Lease, and a pod that crashes
// has the trouble that makes it so.
func today(round []byte) []byte {
	round = leaseRenewed.ReplaceAll(round, nil)
	return bytes.ReplaceAll(round, []byte(`"crashing":true`), []byte(`"trouble":{"waiting":"CrashLoopBackOff"}`))
}

var leaseRenewed = regexp.MustCompile(`,"leaseRenewed":"[^"]*"`)

func readRounds(t *testing.T, file string) (out []flight.Round) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	whole, err := io.ReadAll(z)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	d := json.NewDecoder(bytes.NewReader(today(whole)))
	d.DisallowUnknownFields()
	for {
		var r flight.Round
		if err := d.Decode(&r); err == io.EOF && len(out) > 0 {
			return out
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, r)
	}
}

func writeRounds(t *testing.T, file string, rounds ...flight.Round) {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rounds {
		if err := json.NewEncoder(z).Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
