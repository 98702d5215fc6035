package config

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestParseEnvFile(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want [][2]string
	}{
		"bare":                      {"A=b\n", [][2]string{{"A", "b"}}},
		"no newline at the end":     {"A=b", [][2]string{{"A", "b"}}},
		"empty":                     {"A=\nB=''", [][2]string{{"A", ""}, {"B", ""}}},
		"comments":                  {"# x\n; y\n  # z\nA=b # not a comment", [][2]string{{"A", "b # not a comment"}}},
		"white space around":        {"  A =  b c  \n", [][2]string{{"A", "b c"}}},
		"single quotes":             {`A='b "c" \d'`, [][2]string{{"A", `b "c" \d`}}},
		"double quotes":             {`A="b 'c' \"d\" \$e \n"`, [][2]string{{"A", `b 'c' "d" $e \n`}}},
		"quotes keep white space":   {"A=' b '  ", [][2]string{{"A", " b "}}},
		"quotes span lines":         {"A=\"b\nc\"\nD=e", [][2]string{{"A", "b\nc"}, {"D", "e"}}},
		"continued":                 {"A=b\\\nc\nD=e", [][2]string{{"A", "bc"}, {"D", "e"}}},
		"continued in quotes":       {"A=\"b\\\nc\"", [][2]string{{"A", "bc"}}},
		"escape":                    {`A=b\ c\\d`, [][2]string{{"A", `b c\d`}}},
		"pieces":                    {`A='b'"c"d`, [][2]string{{"A", "bcd"}}},
		"quote inside bare text":    {`A=b'c`, [][2]string{{"A", "b'c"}}},
		"equals signs":              {"A=k=v,x=y", [][2]string{{"A", "k=v,x=y"}}},
		"no expansion":              {"A=$B${C}`d`", [][2]string{{"A", "$B${C}`d`"}}},
		"export is no variable":     {"export A=b\nC=d", [][2]string{{"C", "d"}}},
		"bad name":                  {"1A=b\nA-B=c\nC=d", [][2]string{{"C", "d"}}},
		"no assignment":             {"hello\nC=d", [][2]string{{"C", "d"}}},
		"last one wins by order":    {"A=1\nA=2", [][2]string{{"A", "1"}, {"A", "2"}}},
		"windows line ends":         {"A=b\r\nC=d\r\n", [][2]string{{"A", "b"}, {"C", "d"}}},
		"comment does not continue": {"# a \\\nB=c", [][2]string{{"B", "c"}}},
	} {
		got, err := ParseEnvFile(c.text)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: ParseEnvFile(%q) = %q, %v; want %q", name, c.text, got, err, c.want)
		}
	}
	if _, err := ParseEnvFile("A=b\x00"); err == nil {
		t.Error("a NUL byte passed")
	}
}

func TestLoadEnvFileSetsVariables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.env")
	if err := os.WriteFile(path, []byte("AUTOSCALER_SCALING_UNNEEDED_FOR='42s'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for before, want := range map[string]string{"1h": "1h", "": "42s"} {
		t.Setenv("AUTOSCALER_SCALING_UNNEEDED_FOR", before) // restored at the end of the test
		if err := LoadEnvFile(path); err != nil {
			t.Fatal(err)
		}
		if got := os.Getenv("AUTOSCALER_SCALING_UNNEEDED_FOR"); got != want {
			t.Errorf("the variable is %q, want %q: it was %q before", got, want, before)
		}
	}
	if err := LoadEnvFile(path + ".missing"); err == nil {
		t.Error("a missing file passed")
	}
}

// The example of every setting must read back to the defaults.
func TestQuoteEnvReadsBack(t *testing.T) {
	for _, v := range []string{"", "a", "a b", `a"b`, `a\b`, "a$b`c", "it's", "memory.available<100Mi", "#x"} {
		got, err := ParseEnvFile("A=" + quoteEnv(v))
		if err != nil || len(got) != 1 || got[0][1] != v {
			t.Errorf("quoteEnv(%q) = %s reads back as %q, %v", v, quoteEnv(v), got, err)
		}
	}
}
