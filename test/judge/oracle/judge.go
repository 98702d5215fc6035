package oracle

import (
	"bufio"
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// Judgement is what kube-scheduler says about one pod on one node.
type Judgement struct {
	Fits   bool
	Filter string // the plugin that refused first
	Early  bool   // refused before any node was looked at
	Reason string
}

// Judge is a running process of kube-scheduler's framework. Not safe for concurrent use.
type Judge struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	enc     *gob.Encoder
	dec     *gob.Decoder
	said    bytes.Buffer
	filters []string
	words   []string
}

type wireVerdicts struct {
	Filters  []string
	Words    []string
	Cells    []wireCell
	Skipped  []uint64
	Bindings []Binding
	Error    string
}

// Binding says where kube-scheduler puts one pod: indices into World.Nodes.
type Binding struct {
	Node int32   // 1 + the index; 0: no node passes
	Best []int32 // all nodes with the highest score
}

type wireCell struct {
	Filter uint8
	Early  bool
	Reason uint32
}

// JudgeProgram is the judge of the cached control plane, which is built where it lacks.
func JudgeProgram(ctx context.Context) (string, error) {
	bin, err := controlplane.BinariesOf(ctx, "", os.Stderr)
	return bin.Path(controlplane.Judge), err
}

// WithJudge returns the exit code of run; 1: there is no judge, which is told on standard error.
func WithJudge(run func(program string) int) int {
	program, err := JudgeProgram(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run(program)
}

// StartJudge starts the program. Close ends it.
func StartJudge(ctx context.Context, program string) (*Judge, error) {
	j := &Judge{cmd: exec.CommandContext(ctx, program)}
	j.cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=400")
	j.cmd.Stderr = &j.said
	var err error
	if j.in, err = j.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start the judge: %w", err)
	}
	out, err := j.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the judge: %w", err)
	}
	if err := j.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the judge: %w", err)
	}
	j.enc, j.dec = gob.NewEncoder(j.in), gob.NewDecoder(bufio.NewReaderSize(out, 1<<16))
	return j, nil
}

// Close ends the process.
func (j *Judge) Close() error {
	j.in.Close()
	return j.cmd.Wait()
}

// Ruling is what the judge says about a whole world.
type Ruling struct {
	Cells   [][]Judgement // by waiting pod, then by node
	Skipped [][]string    // by waiting pod: filters that had nothing to say
}

// Send gives the judge a world without waiting for the answer; Receive reads answers
// in the order of the questions.
func (j *Judge) Send(w *World) error {
	wire, err := w.wire()
	if err != nil {
		return err
	}
	if err := j.enc.Encode(wire); err != nil {
		return fmt.Errorf("ask the judge: %w: %s", err, j.said.String())
	}
	return nil
}

// Bind lets kube-scheduler bind the waiting pods of a world one after the other, in their
// order. Among equal nodes it draws by the seed.
func (j *Judge) Bind(w *World, seed uint64) ([]Binding, error) {
	wire, err := w.wire()
	if err != nil {
		return nil, err
	}
	wire.Bind, wire.Seed = true, seed
	if err := j.enc.Encode(wire); err != nil {
		return nil, fmt.Errorf("ask the judge: %w: %s", err, j.said.String())
	}
	var v wireVerdicts
	if err := j.dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("hear the judge: %w: %s", err, j.said.String())
	}
	if v.Error != "" {
		return nil, fmt.Errorf("the judge refused a world: %s", v.Error)
	}
	if len(v.Filters) > 0 {
		j.filters = v.Filters
	}
	if len(v.Bindings) != len(w.Waiting) {
		return nil, fmt.Errorf("hear the judge: %d bindings for %d pods", len(v.Bindings), len(w.Waiting))
	}
	return v.Bindings, nil
}

// Receive reads the next answer; pods and nodes are the counts of its question.
func (j *Judge) Receive(pods, nodes int) (*Ruling, error) {
	var v wireVerdicts
	if err := j.dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("hear the judge: %w: %s", err, j.said.String())
	}
	if v.Error != "" {
		return nil, fmt.Errorf("the judge refused a world: %s", v.Error)
	}
	if len(v.Filters) > 0 {
		j.filters = v.Filters
	}
	j.words = append(j.words, v.Words...)
	if len(v.Cells) != pods*nodes || len(v.Skipped) != pods {
		return nil, fmt.Errorf("hear the judge: %d verdicts for %d pods on %d nodes", len(v.Cells), pods, nodes)
	}
	r := &Ruling{Cells: make([][]Judgement, pods), Skipped: make([][]string, pods)}
	for p := range pods {
		r.Cells[p] = make([]Judgement, nodes)
		for n := range nodes {
			r.Cells[p][n] = j.cell(v.Cells[p*nodes+n])
		}
		for i, name := range j.filters {
			if v.Skipped[p]&(1<<(i+1)) != 0 {
				r.Skipped[p] = append(r.Skipped[p], name)
			}
		}
	}
	return r, nil
}

func (j *Judge) cell(c wireCell) Judgement {
	if c.Filter == 0 {
		return Judgement{Fits: true}
	}
	out := Judgement{Early: c.Early, Filter: "?"}
	if int(c.Filter) <= len(j.filters) {
		out.Filter = j.filters[c.Filter-1]
	}
	if int(c.Reason) < len(j.words) {
		out.Reason = j.words[c.Reason]
	}
	return out
}

// Ask is Send and Receive.
func (j *Judge) Ask(w *World) (*Ruling, error) {
	if err := j.Send(w); err != nil {
		return nil, err
	}
	return j.Receive(len(w.Waiting), len(w.Nodes))
}

// Filters are the names of the scheduler's filters in their order; empty before the
// first answer.
func (j *Judge) Filters() []string { return j.filters }

// Failed tells whether a reason is an error of the scheduler rather than a refusal.
func (v Judgement) Failed() bool { return strings.HasPrefix(v.Reason, "error: ") }
