package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"strings"
	"testing"
)

func TestRunPrintsTheEnvironmentAndTheWorld(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, log bytes.Buffer
	if err := run(ctx, []string{"--group", "workers=0:10:t3.large", "--tag", "a=b"}, &out, &log); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"export AWS_ENDPOINT_URL=http://127.0.0.1:", "export AWS_REGION=us-east-1\n", "export AWS_SECRET_ACCESS_KEY="} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if !strings.Contains(log.String(), "group workers min 0 max 10 desired 0") {
		t.Errorf("the world is not in\n%s", &log)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for arg, want := range map[string]string{
		"workers":                 "want NAME=MIN:MAX:TYPE",
		"workers=x:1:t3.large":    "MIN is no number: x",
		"workers=3:1:t3.large":    "Max bound, 1, must be greater than or equal to min bound, 3",
		"workers=0:1:t9.tiny":     "there is no instance type t9.tiny",
		"workers=0:1:t3.large:no": "DESIRED is no number: no",
	} {
		var out, log bytes.Buffer
		err := run(context.Background(), []string{"--group", arg}, &out, &log)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", arg, err)
		}
	}
	var log bytes.Buffer
	if err := run(context.Background(), []string{"--help"}, &log, &log); !errors.Is(err, flag.ErrHelp) || !strings.Contains(log.String(), "Example:") {
		t.Errorf("help: %v\n%s", err, &log)
	}
}
