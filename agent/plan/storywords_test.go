package plan

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// command is what a line of a story may say: so many words that have no key (text: any, to the
// end of the line), and keys.
type command struct {
	plain  int
	text   bool
	keys   string
	anyKey bool // it refuses a key by itself
}

const (
	templateKeys = "cpu mem pods gpu disks devices labels taints"
	groupKeys    = templateKeys + " target min max unknown stale paused keeps replacing replacingstale busy price prio balance quota pause spot gpuutil unneeded provision startup ignoreds zones source drift maxage repair budgets"
	classKeys    = "app cpu mem gpu select prio tolerate port uses large near anti spread claim claims refused"
)

// words are the language of the stories. A new word is written here and read in teller; a word
// that nothing reads fails TestEveryWordIsRead.
var words = map[string]command{
	"group":    {plain: 2, keys: groupKeys},
	"set":      {plain: 1, keys: groupKeys},
	"instance": {plain: 2, keys: "phase age addr uncreated failure"},
	"node":     {plain: 1, keys: "group instance age cpu mem pods gpu ready since pid addr uuid cordon mark ours anno plane labels taints source devices taken"},
	"pods":     {plain: 2, keys: classKeys + " ns age on safe disrupt volume mirror gated nominated new failed pending owner delay keep evictds pdb deleting daemon rev from unready crashing unstarted"},

	"daemonset": {plain: 1, keys: classKeys + " rev"},
	"headroom":  {plain: 2, keys: "cpu mem gpu select machine from to"},

	"missing": {plain: 2}, "gone": {plain: 2}, "pdb": {plain: 2}, "pass": {plain: 1}, "restart": {}, "accept": {keys: "slowly"},
	"interrupt": {plain: 1}, "spared": {plain: 1},

	"policy": {anyKey: true},

	"stale": {text: true}, "failure": {text: true}, "failed": {text: true}, "kept": {text: true},
	"priorities": {text: true}, "note": {text: true},
	"shows": {plain: 1, keys: "taints operator lacks has gpu disks devices taken kubelet ready"}, "controlplane": {plain: 1}, "sick": {plain: 2, keys: "since"},
}

// refused says what is wrong with the words of a line, "" where nothing is.
func refused(f []string) string {
	c, ok := words[f[0]]
	if !ok {
		return fmt.Sprintf("unknown command %q; known are %s", f[0], strings.Join(slices.Sorted(maps.Keys(words)), ", "))
	}
	if c.text {
		return ""
	}
	plain, seen := 0, map[string]bool{}
	for _, x := range f[1:] {
		key, _, keyed := strings.Cut(x, "=")
		switch {
		case !keyed && len(seen) > 0:
			return fmt.Sprintf("%q: the words without a key come first", x)
		case !keyed:
			plain++
			continue
		case !c.anyKey && !slices.Contains(strings.Fields(c.keys), key):
			return fmt.Sprintf("unknown word %q; %s knows %s", x, f[0], c.keys)
		case seen[key]:
			return fmt.Sprintf("%s is said twice", key)
		}
		seen[key] = true
	}
	if plain != c.plain {
		return fmt.Sprintf("%d words without a key, and %s has %d", plain, f[0], c.plain)
	}
	return ""
}

// badValue is a value that a line cannot mean.
type badValue string

func must[T any](s string, v T, err error) T {
	if err != nil && s != "" {
		panic(badValue(err.Error()))
	}
	return v
}

func num(s string) int { n, err := strconv.Atoi(s); return must(s, n, err) }

func dur(s string) time.Duration { d, err := time.ParseDuration(s); return must(s, d, err) }

func size(s string) int64 {
	for suffix, unit := range map[string]int64{"Mi": 1 << 20, "Gi": 1 << 30} {
		if n, ok := strings.CutSuffix(s, suffix); ok {
			return int64(num(n)) * unit
		}
	}
	return int64(num(s))
}

// TestUnknownWords: what a line cannot mean is refused.
func TestUnknownWords(t *testing.T) {
	for line, want := range map[string]string{
		"pods web 4 cpu=100 memory=1Gi":  `unknown word "memory=1Gi"; pods knows app cpu mem`,
		"pods web 4 5 cpu=100":           "3 words without a key, and pods has 2",
		"pods web 4 cpu=100 cpu=200":     "cpu is said twice",
		"pod web 4 cpu=100":              `unknown command "pod"; known are accept, controlplane`,
		"node n1 group=w size=4":         `unknown word "size=4"`,
		"pods web cpu=100 4":             `"4": the words without a key come first`,
		"policy MaxNodesTotal 4":         "2 words without a key, and policy has 0",
		"accept everything":              "1 words without a key, and accept has 0",
		"group w 0..5 cpu=1 prise=0.192": `unknown word "prise=0.192"`,
	} {
		if got := refused(strings.Fields(line)); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	for _, s := range []string{"4x", "ten", "1.5"} {
		func() {
			defer func() {
				if _, ok := recover().(badValue); !ok {
					t.Errorf("the number %q is taken", s)
				}
			}()
			num(s)
		}()
	}
}

// seldom are lines with the words that no story has.
const seldom = `
group w 0..5 target=1 cpu=2000m mem=8Gi pods=30 unneeded=5m busy=it_updates
instance w aws:///z/i-1 uncreated=1 age=1h
node n1 group=w instance=aws:///z/i-1 uuid=4c4c labels=pool:a
set w min=1 max=7
`

// TestEveryWordIsRead plays each line of the stories with and without each of its words: a word
// of the language changes some world. pending=1 alone says what is so without it.
func TestEveryWordIsRead(t *testing.T) {
	read := map[string]bool{"pending": true}
	files, _ := filepath.Glob("testdata/*.txtar")
	texts := map[string]string{"seldom": "-- world --\n" + seldom}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(b)
	}
	for file, text := range texts {
		_, sections := split(text)
		w := &teller{t: t, p: policy()}
		w.s.Now = t0
		for _, s := range sections {
			if s.name != "world" {
				continue
			}
			n := s.line
			for line := range strings.Lines(s.body) {
				w.at = fmt.Sprintf("%s:%d", file, n)
				w.without(strings.Fields(line), read)
				w.line(strings.TrimSpace(line))
				n++
			}
			w.last, w.m = Decide(w.s, w.m, w.p)
			w.s.Outcomes = nil
		}
	}
	for name, c := range words {
		for _, key := range strings.Fields(c.keys) {
			if !read[key] {
				t.Errorf("no line shows that %s reads %s=: remove the word, or write a story or a line of seldom", name, key)
			}
		}
	}
}

// without notes which keys of a line change what it does to the world.
func (w *teller) without(f []string, read map[string]bool) {
	if len(f) == 0 || words[f[0]].keys == "" {
		return
	}
	after := func(f []string) (out []byte, fault any) {
		defer func() { fault = recover() }()
		x := &teller{t: w.t, s: again(w.t, w.s), m: w.m, p: w.p, last: w.last, at: w.at}
		x.p.Headroom = slices.Clone(w.p.Headroom)
		x.do(f, strings.Join(f, " "))
		return append(text(w.t, x.s), text(w.t, x.p)...), nil
	}
	whole, _ := after(f)
	for i, x := range f {
		key, _, keyed := strings.Cut(x, "=")
		if keyed && !read[key] {
			less, fault := after(slices.Delete(slices.Clone(f), i, i+1))
			read[key] = fault != nil || !bytes.Equal(whole, less)
		}
	}
}
