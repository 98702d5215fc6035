// Package flight keeps the last rounds of the scaler: the facts, the memory
// and the plan of each, so that a decision can be read back and decided
// once more later (`autoscaler-agent replay`).
//
// A round whose plan is the one before it is not kept again: an idle agent's
// recorder holds the rounds that mattered. It refuses to grow beyond its byte budget,
// in memory and on disk, to write where anybody else could read, and to know how a
// decision is made.
package flight

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Format is that of the rounds that this version writes.
const Format = 1

// Round is one decision: its inputs whole, and what came of them. Policy, Memory,
// Decided and After are the engine's own types as JSON.
type Round struct {
	Format   int              `json:"format"`
	Version  string           `json:"version"` // of the agent that decided
	At       time.Time        `json:"at"`
	Snapshot cluster.Snapshot `json:"snapshot"`
	Memory   json.RawMessage  `json:"memory"` // what Decide was given
	Policy   json.RawMessage  `json:"policy"`
	Plan     string           `json:"plan"`    // the journal's lines
	Decided  json.RawMessage  `json:"decided"` // the plan as data
	After    json.RawMessage  `json:"after"`   // the memory that it left
}

// Pack writes a round as gzip of one JSON line. The four values are whatever marshals
// to JSON.
func Pack(version string, s cluster.Snapshot, memory, policy, decided, after any, plan string) ([]byte, error) {
	round := Round{Format: Format, Version: version, At: s.Now, Snapshot: s, Plan: plan}
	for _, part := range []struct {
		name string
		from any
		to   *json.RawMessage
	}{{"memory", memory, &round.Memory}, {"policy", policy, &round.Policy}, {"plan", decided, &round.Decided}, {"memory after", after, &round.After}} {
		b, err := json.Marshal(part.from)
		if err != nil {
			return nil, fmt.Errorf("record round: %s: %w", part.name, err)
		}
		*part.to = b
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed) // three times as fast for a quarter more bytes
	if err != nil {
		return nil, fmt.Errorf("record round: %w", err)
	}
	if err := json.NewEncoder(z).Encode(round); err != nil {
		return nil, fmt.Errorf("record round: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("record round: %w", err)
	}
	return bytes.Clone(b.Bytes()), nil
}

// Recorder holds rounds, newest last, compressed, within a budget of bytes.
type Recorder struct {
	mu     sync.Mutex
	budget int
	size   int
	rounds [][]byte // gzip of one JSON line each
	last   uint64   // fingerprint of the plan kept last
}

// New makes a recorder that holds at most budget compressed bytes.
func New(budget int) *Recorder { return &Recorder{budget: budget} }

// Same tells that a plan is that of the round kept last, by a fingerprint of it.
func (r *Recorder) Same(plan uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return plan == r.last && len(r.rounds) > 0
}

// Keep takes a packed round in; the oldest go when the budget is passed.
func (r *Recorder) Keep(packed []byte, plan uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = plan
	r.rounds = append(r.rounds, packed)
	r.size += len(packed)
	for r.size > r.budget && len(r.rounds) > 1 {
		r.size -= len(r.rounds[0])
		r.rounds[0] = nil
		r.rounds = r.rounds[1:]
	}
}

// WriteTo writes the kept rounds as gzip of JSON lines, oldest first. Members of a
// gzip stream may follow one another, so nothing is packed anew.
func (r *Recorder) WriteTo(w io.Writer) (int64, error) {
	r.mu.Lock()
	rounds := append([][]byte(nil), r.rounds...)
	r.mu.Unlock()
	var n int64
	for _, line := range rounds {
		m, err := w.Write(line)
		n += int64(m)
		if err != nil {
			return n, fmt.Errorf("write rounds: %w", err)
		}
	}
	return n, nil
}

// Read decodes what WriteTo wrote. Of a file that ends in the middle of a round, the
// rounds before it are returned with the error.
func Read(in io.Reader) ([]Round, error) {
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("read rounds: %w", err)
	}
	var rounds []Round
	for d := json.NewDecoder(z); ; {
		var round Round
		switch err := d.Decode(&round); {
		case err == io.EOF:
			return rounds, nil
		case err != nil:
			return rounds, fmt.Errorf("read rounds: round %d: %w", len(rounds)+1, err)
		case round.Format != Format:
			return rounds, fmt.Errorf("read rounds: round %d is of format %d, this version reads %d", len(rounds)+1, round.Format, Format)
		}
		rounds = append(rounds, round)
	}
}
