package oracle

import (
	"context"
	"encoding/gob"
	"fmt"
	"io"
)

// Record is what kube-scheduler said about the world of a seed, so that fit can be
// judged again without it: a byte per waiting pod and node.
type Record struct {
	Seed  uint64
	Cells []byte
}

// The values of Record.Cells.
const (
	cellRefused = iota
	cellFits
	cellFailed // an error of the scheduler: no verdict
)

// WriteRecords judges the worlds of some seeds and writes what the judge says.
func WriteRecords(ctx context.Context, program string, seed uint64, worlds int, to io.Writer) error {
	j, err := StartJudge(ctx, program)
	if err != nil {
		return err
	}
	defer j.Close()
	enc := gob.NewEncoder(to)
	for i := range worlds {
		w := Generate(seed + uint64(i))
		real, err := j.Ask(w)
		if err != nil {
			return err
		}
		r := Record{Seed: seed + uint64(i)}
		for _, row := range real.Cells {
			for _, v := range row {
				r.Cells = append(r.Cells, cellOf(v))
			}
		}
		if err := enc.Encode(r); err != nil {
			return fmt.Errorf("write records: %w", err)
		}
	}
	return nil
}

func cellOf(v Judgement) byte {
	switch {
	case v.Failed():
		return cellFailed
	case v.Fits:
		return cellFits
	}
	return cellRefused
}

// Replay holds fit against records. It returns the first difference in words, or "",
// and how many judgements it made.
func Replay(from io.Reader) (difference string, judgements int, err error) {
	dec := gob.NewDecoder(from)
	for {
		var r Record
		if err := dec.Decode(&r); err == io.EOF {
			return "", judgements, nil
		} else if err != nil {
			return "", judgements, fmt.Errorf("read records: %w", err)
		}
		w := Generate(r.Seed)
		ours, err := Answers(w)
		if err != nil {
			return fmt.Sprintf("seed %d: %v", r.Seed, err), judgements, nil
		}
		for p := range w.Waiting {
			for n := range w.Nodes {
				cell, o := r.Cells[p*len(w.Nodes)+n], ours[p][n]
				judgements++
				if !o.Held && cell != cellFailed && o.Fits != (cell == cellFits) {
					return fmt.Sprintf("seed %d: pod %s on node %s: kube-scheduler %v, fit %v %s %s", r.Seed, w.Waiting[p].Name, w.Nodes[n].Name, cell == cellFits, o.Fits, o.Rule, o.Words), judgements, nil
				}
			}
		}
	}
}
