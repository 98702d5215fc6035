// Package judge is kube-scheduler's own framework as a filter between two pipes: it
// reads worlds from standard input and writes, for every pod that waits and every
// node, which filter refused it first and in which words.
//
// It lives in the module that pins the control plane, so that the judge is the very
// version of the kube-scheduler that the tests run, and it imports nothing of the
// product: what it says cannot be coloured by what is judged. It refuses to decide
// more than it is asked: nothing is preempted or written anywhere, and pods are bound in
// its own memory alone, where a world asks for that.
package judge

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
)

// World is one moment of a cluster, each object as its protobuf form. The order of
// the fields means nothing to gob; the names are the contract with the other side
// (test/judge/oracle).
type World struct {
	Nodes, Pods, Waiting, Nominated           [][]byte // Pods are bound; Nominated wait with a nominatedNodeName
	Namespaces, Claims, Volumes, Classes      [][]byte
	CSINodes, Drivers, Attachments, Capacity  [][]byte
	ReplicaSets                               [][]byte
	DeviceClasses, DeviceClaims, DeviceSlices [][]byte
	// Bind asks for bindings instead of verdicts: the waiting pods are bound one after the
	// other, in their order, ties drawn by Seed.
	Bind bool
	Seed uint64
}

// Verdicts answer one World: a cell per waiting pod and node, pods outermost.
type Verdicts struct {
	// Filters are the names of the filter plugins in the order in which they run; only
	// in the first answer.
	Filters []string
	// Words are the reasons that no earlier answer had; they are counted on from answer
	// to answer.
	Words []string
	Cells []Cell
	// Skipped has a bit per filter for each waiting pod: the filter had nothing to say.
	Skipped []uint64
	// Bindings answer a World with Bind, one per waiting pod.
	Bindings []Binding
	Error    string
}

// Binding says where one pod was put: indices into World.Nodes.
type Binding struct {
	Node int32   // 1 + the index; 0: no node passes
	Best []int32 // all nodes with the highest score
}

// Cell is one judgement. Filter is 0 for "it fits", else 1 + the index of the filter
// that refused; Reason indexes the words of all answers so far.
type Cell struct {
	Filter uint8
	Early  bool // refused before any node was looked at, or by the list of possible nodes
	Reason uint32
}

// Main serves standard input until it ends.
func Main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}

func serve(in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	c, err := newCourt(ctx)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(out, 1<<16)
	dec, enc := gob.NewDecoder(bufio.NewReaderSize(in, 1<<20)), gob.NewEncoder(w)
	for {
		var world World
		if err := dec.Decode(&world); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a world: %w", err)
		}
		if err := enc.Encode(c.judge(ctx, &world)); err != nil {
			return fmt.Errorf("write verdicts: %w", err)
		}
		if err := w.Flush(); err != nil {
			return fmt.Errorf("write verdicts: %w", err)
		}
	}
}
