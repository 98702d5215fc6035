package oracle

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	judgements = flag.Int64("judgements", 100_000, "how many judgements TestOracle makes")
	firstSeed  = flag.Uint64("seed", 1, "seed of TestOracle's first world; 0: of the clock")
	allMutants = flag.Bool("all-mutants", false, "try every mutant, not one of each feature")
	rewrite    = flag.Bool("rewrite", false, "write the stories' verdicts anew, from the judge")
)

// judgeProgram is built once for all tests of the package.
var judgeProgram string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(WithJudge(func(program string) int {
		judgeProgram = program
		return m.Run()
	}))
}

// TestOracle is a share of what `make oracle` does, on other worlds each time.
func TestOracle(t *testing.T) {
	seed := *firstSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	began := time.Now()
	c, found, err := Run{Program: judgeProgram, Seed: seed, Judgements: *judgements, Workers: 2}.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	c.Print(&table)
	t.Logf("seed %d: %d judgements in %s\n%s", seed, c.Judgements, time.Since(began).Round(time.Second/10), table.String())
	for _, f := range found {
		story, err := Minimal(t.Context(), judgeProgram, f)
		if err != nil {
			t.Fatal(err)
		}
		t.Errorf("fit and kube-scheduler differ; the least world that shows it:\n%s", story)
	}
}

// TestStories replays what the oracle once found, against fit and against the judge.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no stories", err)
	}
	j, err := StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { replayStory(t, j, file) })
	}
}

func replayStory(t *testing.T, j *Judge, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w, want, err := ReadStory(text)
	if err != nil {
		t.Fatal(err)
	}
	real, err := j.Ask(w)
	if err != nil {
		t.Fatal(err)
	}
	if got := verdicts(w, real); got != want {
		if *rewrite {
			head, _, _ := strings.Cut(string(text), "-- kube-scheduler --\n")
			if err := os.WriteFile(file, []byte(head+"-- kube-scheduler --\n"+got), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		t.Errorf("kube-scheduler says\n%swant\n%s", got, want)
	}
	ours, err := Answers(w)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range Compare(w, real, ours) {
		t.Errorf("pod %s on node %s: %s", w.Waiting[d.Pod].Name, w.Nodes[d.Node].Name, d)
	}
	for p := range ours {
		for n, o := range ours[p] {
			if o.Held {
				t.Errorf("pod %s on node %s is held: %s", w.Waiting[p].Name, w.Nodes[n].Name, o.Words)
			}
		}
	}
}

// TestSameSeedSameWorld: a printed seed is worth nothing otherwise.
func TestSameSeedSameWorld(t *testing.T) {
	for seed := range uint64(50) {
		a, err := Story("", Generate(seed), emptyRuling(Generate(seed)))
		if err != nil {
			t.Fatal(err)
		}
		b, err := Story("", Generate(seed), emptyRuling(Generate(seed)))
		if err != nil || string(a) != string(b) {
			t.Fatalf("seed %d makes two worlds (%v)", seed, err)
		}
		w, _, err := ReadStory(a)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if c, err := Story("", w, emptyRuling(w)); err != nil || string(c) != string(a) {
			t.Fatalf("seed %d: a story read and written is another story (%v)", seed, err)
		}
	}
}

func emptyRuling(w *World) *Ruling {
	r := &Ruling{Cells: make([][]Judgement, len(w.Waiting))}
	for p := range r.Cells {
		r.Cells[p] = make([]Judgement, len(w.Nodes))
	}
	return r
}
