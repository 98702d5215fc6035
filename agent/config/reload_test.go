package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestChangesOfTheEnvFile: the log level is taken, other changes are named, and a mistake that
// would make a restart fail is told before the restart.
func TestChangesOfTheEnvFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.env")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const start = "AUTOSCALER_LOG_LEVEL=info\nAUTOSCALER_LISTEN=off\nHTTPS_PROXY=http://p:1\n"
	write(start)
	seen := SeeEnvFile(path)
	for _, c := range []struct {
		text, level, others, err string
	}{
		{start, "", "", ""},
		{"# x\n" + start, "", "", ""},
		{strings.Replace(start, "info", "debug", 1), "debug", "", ""},
		{strings.Replace(start, "AUTOSCALER_LOG_LEVEL=info\n", "", 1), "", "", ""}, // info is the default
		{strings.Replace(start, "info", "loud", 1), "", "", "use debug, info, warn or error"},
		{strings.Replace(start, "off", ":1", 1) + "AUTOSCALER_SCALING_UNNEEDED_FOR=5m\n", "", "AUTOSCALER_LISTEN AUTOSCALER_SCALING_UNNEEDED_FOR", ""},
		{"AUTOSCALER_LOG_LEVEL=info\n", "", "AUTOSCALER_LISTEN HTTPS_PROXY", ""},
		{start + "AUTOSCALE_LISTEN=off\n", "", "", ":4: AUTOSCALE_LISTEN is not a variable of this agent: did you mean AUTOSCALER_LISTEN?"},
	} {
		write(start)
		seen := SeeEnvFile(path)
		write(c.text)
		level, others, err := seen.Changes()
		if level != c.level || strings.Join(others, " ") != c.others || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: level %q, others %q, error %v; want %+v", c.text, level, others, err, c)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, _, err := seen.Changes(); err == nil {
		t.Error("a file that is gone is no error")
	}
}

// TestLoadCredentials: files of LoadCredential= become variables, and nothing else does.
func TestLoadCredentials(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"OS_APPLICATION_CREDENTIAL_SECRET": "s3cret\n", "AWS_SECRET_ACCESS_KEY": "other", "PATH": "/evil", "LD_PRELOAD": "/evil.so", "AUTOSCALER_LISTEN": "off", "notes.txt": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	for name, value := range map[string]string{"OS_APPLICATION_CREDENTIAL_SECRET": "", "AWS_SECRET_ACCESS_KEY": "mine", "AUTOSCALER_LISTEN": "", "LD_PRELOAD": ""} {
		t.Setenv(name, value)
	}
	path := os.Getenv("PATH")
	if err := LoadCredentials(); err != nil {
		t.Fatal(err)
	}
	got := []string{os.Getenv("OS_APPLICATION_CREDENTIAL_SECRET"), os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AUTOSCALER_LISTEN"), os.Getenv("LD_PRELOAD"), os.Getenv("PATH")}
	if want := []string{"s3cret", "mine", "off", "", path}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if err := os.WriteFile(filepath.Join(dir, "OS_PASSWORD"), []byte("two\nlines\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OS_PASSWORD", "")
	if err := LoadCredentials(); err == nil || !strings.Contains(err.Error(), "OS_PASSWORD") || strings.Contains(err.Error(), "two") {
		t.Errorf("error %v", err)
	}
}
