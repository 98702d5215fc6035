// Package flight keeps the last rounds of the scaler: what it saw, what it
// remembered and what it decided, so that a decision can be read back later.
//
// A round whose plan is the one before it is not kept again: an idle agent's
// recorder holds the rounds that mattered. It refuses to write to disk, to grow
// beyond its byte budget and to know how a decision is made.
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

// Round is one decision: its inputs whole and its plan as text.
type Round struct {
	At       time.Time        `json:"at"`
	Snapshot cluster.Snapshot `json:"snapshot"`
	Memory   json.RawMessage  `json:"memory,omitempty"` // what Decide was given
	Policy   json.RawMessage  `json:"policy,omitempty"`
	Plan     string           `json:"plan"`
}

// Recorder holds rounds, newest last, compressed, within a budget of bytes.
type Recorder struct {
	mu     sync.Mutex
	budget int
	size   int
	rounds [][]byte // gzip of one JSON line each
	last   string
}

// New makes a recorder that holds at most budget compressed bytes.
func New(budget int) *Recorder { return &Recorder{budget: budget} }

// Record keeps a round unless its plan is that of the round before. Memory and
// Policy are whatever marshals to JSON.
func (r *Recorder) Record(s cluster.Snapshot, memory, policy any, plan string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if plan == r.last && len(r.rounds) > 0 {
		return nil
	}
	m, err := json.Marshal(memory)
	if err != nil {
		return fmt.Errorf("record round: memory: %w", err)
	}
	p, err := json.Marshal(policy)
	if err != nil {
		return fmt.Errorf("record round: policy: %w", err)
	}
	line, err := pack(Round{At: s.Now, Snapshot: s, Memory: m, Policy: p, Plan: plan})
	if err != nil {
		return fmt.Errorf("record round: %w", err)
	}
	r.last = plan
	r.rounds = append(r.rounds, line)
	r.size += len(line)
	for r.size > r.budget && len(r.rounds) > 1 {
		r.size -= len(r.rounds[0])
		r.rounds[0] = nil
		r.rounds = r.rounds[1:]
	}
	return nil
}

func pack(round Round) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := json.NewEncoder(z).Encode(round); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(b.Bytes()), nil
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

// Read decodes what WriteTo wrote.
func Read(in io.Reader) ([]Round, error) {
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("read rounds: %w", err)
	}
	var rounds []Round
	for d := json.NewDecoder(z); ; {
		var round Round
		if err := d.Decode(&round); err == io.EOF {
			return rounds, nil
		} else if err != nil {
			return nil, fmt.Errorf("read rounds: %w", err)
		}
		rounds = append(rounds, round)
	}
}
