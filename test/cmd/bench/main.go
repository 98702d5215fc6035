// Command bench reads what `go test -bench` prints and holds it against the peers'
// figures and the bars: one line a row, ours beside theirs, the ratio, pass or FAIL.
// With -write it puts the table into test/cmd/bench/README.md.
//
//	go test -run '^$' -bench . -benchmem ./agent/... | (cd test && go run ./cmd/bench -write cmd/bench/README.md)
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
)

func main() { os.Exit(run(os.Stdin, os.Stdout, os.Args[1:])) }

func run(in io.Reader, out io.Writer, args []string) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	write := flags.String("write", "", "the page whose table is replaced: test/cmd/bench/README.md")
	strict := flags.Bool("strict", false, "exit with 1 when a bar is missed or a row has no figure")
	if flags.Parse(args) != nil {
		return 2
	}
	got, err := parse(in, out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	text, missed := table(got)
	fmt.Fprintf(out, "\n%s", text)
	if *write != "" {
		if err := replace(*write, text); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			return 1
		}
	}
	if *strict && missed > 0 {
		return 1
	}
	return 0
}

// figures are the values of one benchmark by unit; of several runs of it the least of
// each.
type figures map[string]float64

var cores = regexp.MustCompile(`-\d+$`)

// parse reads benchmark lines and passes everything on.
func parse(in io.Reader, out io.Writer) (map[string]figures, error) {
	got := map[string]figures{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fmt.Fprintln(out, lines.Text())
		f := strings.Fields(lines.Text())
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		name := cores.ReplaceAllString(strings.TrimPrefix(f[0], "Benchmark"), "")
		if got[name] == nil {
			got[name] = figures{}
		}
		for i := 2; i+1 < len(f); i += 2 {
			v, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return nil, fmt.Errorf("line of %s: %q is no number", f[0], f[i])
			}
			if old, ok := got[name][f[i+1]]; !ok || v < old {
				got[name][f[i+1]] = v
			}
		}
	}
	return got, lines.Err()
}

// cpu is the processor time of one round in ms; the time that passed where the
// benchmark does not measure it.
func (f figures) cpu() float64 {
	if v, ok := f["cpu-ms/op"]; ok {
		return v
	}
	if v, ok := f["cpu-ns/op"]; ok {
		return v / 1e6
	}
	return f["ns/op"] / 1e6
}

// table writes the rows and the bars, and counts what was missed.
func table(got map[string]figures) (string, int) {
	var b strings.Builder
	missed := 0
	judge := func(ok bool) string {
		if ok {
			return "pass"
		}
		missed++
		return "**FAIL**"
	}
	fmt.Fprintln(&b, "| row | Cluster Autoscaler CPU ms | ours | times | its MB | ours | its nodes | ours | bar: 10 times |")
	fmt.Fprintln(&b, "|---|---:|---:|---:|---:|---:|---:|---:|---|")
	sum, n := 0.0, 0
	for _, r := range rows {
		f, ok := got[r.bench]
		if !ok {
			missed++
			fmt.Fprintf(&b, "| %s | %s | no figure | | %s | | %s | | **none** |\n", r.words, number(r.ms), number(r.mb), r.nodes)
			continue
		}
		ratio := r.ms / f.cpu()
		sum, n = sum+math.Log(ratio), n+1
		verdict := judge(ratio >= 10 && (r.pods == 0 || f["pods"] >= r.pods) && (r.most == 0 || f["nodes"] <= r.most))
		nodes := ""
		if f["nodes"] > 0 {
			nodes = number(f["nodes"])
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", r.words, number(r.ms), number(f.cpu()), number(ratio), number(r.mb), number(f["B/op"]/1e6), r.nodes, nodes, verdict)
	}
	if n > 0 {
		mean := math.Exp(sum / float64(n))
		fmt.Fprintf(&b, "\nGeometric mean over %d of %d rows: %s times less processor time; the bar is 100: %s.\n", n, len(rows), number(mean), judge(mean >= 100))
	}
	if f, ok := got["Floor/generic-30000-300"]; ok {
		fmt.Fprintf(&b, "\nThe floor, plain first fit by counts of 30,000 pods in 300 specs, takes %s ms on this machine and took\n%s ms on that of the peers' figures, so that this one is %s times as slow. Nothing is corrected for it.\n", number(f.cpu()), number(peersFloor), number(f.cpu()/peersFloor))
	}
	fmt.Fprint(&b, "\n| bar | ours | wanted | |\n|---|---:|---:|---|\n")
	for _, x := range bars {
		v, ok := x.value(got)
		if !ok {
			missed++
			fmt.Fprintf(&b, "| %s | no figure | %s | **none** |\n", x.words, x.wanted)
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", x.words, number(v), x.wanted, judge(x.ok(v)))
	}
	return b.String(), missed
}

// number writes three digits that tell something.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 10000:
		s := strconv.FormatFloat(v, 'f', 0, 64)
		for i := len(s) - 3; i > 0; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
		return s
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

const (
	begin = "<!-- the table of `make bench` begins -->\n"
	end   = "<!-- the table of `make bench` ends -->\n"
)

// replace puts the table into a page, between its two marks.
func replace(page, text string) error {
	raw, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(raw), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s: the marks of the table are not there", page)
	}
	return os.WriteFile(page, []byte(head+begin+"\n"+text+"\n"+end+tail), 0o644)
}
