package plan

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/internal/flight"
)

// TestFoundRounds plays the sequences of rounds in which an Engine once said something else than
// Decide: data, as the worlds of TestFoundWorlds. `go test ./agent/plan -run TestFoundRounds
// -keep A,B` keeps the 40 rounds of FuzzEngine's two seeds.
//
// 175-11: in round 21 a timer of the last answer has run out.
func TestFoundRounds(t *testing.T) {
	fileOf := func(name string) string { return filepath.Join("testdata/rounds", name+".json.gz") }
	if *keep != "" {
		keepRounds(t, fileOf)
	}
	if seeds, _ := filepath.Glob("testdata/fuzz/FuzzEngine/*"); len(seeds) > 0 {
		t.Errorf("%v are seeds, not rounds: keep what they draw (-keep A,B) and remove them", seeds)
	}
	files, err := filepath.Glob(fileOf("*"))
	if err != nil || len(files) < 1 {
		t.Fatalf("%d sequences, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json.gz"), func(t *testing.T) {
			rounds := readRounds(t, file)
			if again := playRounds(t, rounds); again == 0 {
				t.Errorf("none of %d rounds was answered from memory: the sequence shows nothing", len(rounds))
			}
		})
	}
}

func keepRounds(t *testing.T, fileOf func(string) string) {
	t.Helper()
	var a, b uint64
	if _, err := fmt.Sscanf(*keep, "%d,%d", &a, &b); err != nil {
		t.Fatalf("-keep %s: write two seeds: A,B", *keep)
	}
	var rounds []flight.Round
	again := playEngine(t, someWorld, rand.New(rand.NewPCG(a, b)), *keep, 40, nil, func(s cluster.Snapshot, m decision.Memory, p decision.Policy) {
		rounds = append(rounds, flight.Round{Format: flight.Format, At: s.Now, Snapshot: s, Memory: text(t, m), Policy: text(t, p)})
	})
	t.Logf("%d of %d rounds were answered from memory", again, len(rounds))
	writeRounds(t, fileOf(fmt.Sprintf("%d-%d", a, b)), rounds...)
}

// playRounds lets an Engine and Decide answer all rounds. What is equal to the round before is
// the same value, as an observer hands it out: by that an Engine knows that nothing has changed.
func playRounds(t *testing.T, rounds []flight.Round) (again int) {
	t.Helper()
	var e Engine
	var before cluster.Snapshot
	var used, out decision.Memory
	for i, r := range rounds {
		m, p := parts(t, r)
		for _, old := range []decision.Memory{out, used} {
			if bytes.Equal(text(t, m), text(t, old)) {
				m = old
			}
		}
		s := r.Snapshot
		share(&s, &before)
		before, used = s, m
		out = sameAsDecide(t, &e, s, m, p, fmt.Sprint("round ", i))
		if e.Cached() {
			again++
		}
	}
	return again
}

// share puts the values of the Snapshot before in the place of equal ones.
func share(s, before *cluster.Snapshot) {
	for i, n := range s.Nodes {
		if k := slices.IndexFunc(before.Nodes, func(old *cluster.Node) bool { return reflect.DeepEqual(old, n) }); k >= 0 {
			s.Nodes[i] = before.Nodes[k]
		}
	}
	now, was := reflect.ValueOf(s).Elem(), reflect.ValueOf(before).Elem()
	for i := range now.NumField() {
		if k := now.Field(i).Kind(); (k == reflect.Slice || k == reflect.Map) && reflect.DeepEqual(now.Field(i).Interface(), was.Field(i).Interface()) {
			now.Field(i).Set(was.Field(i))
		}
	}
}
