package awsmodel

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Module is where the models come from.
const Module = "github.com/aws/aws-sdk-go"

// paths of the models inside the module, by service.
var paths = map[string]string{
	"ec2":         "models/apis/ec2/2016-11-15/api-2.json",
	"autoscaling": "models/apis/autoscaling/2011-01-01/api-2.json",
	"ssm":         "models/apis/ssm/2014-11-06/api-2.json",
	"pricing":     "models/apis/pricing/2017-10-15/api-2.json",
	"iam":         "models/apis/iam/2010-05-08/api-2.json",
	"sts":         "models/apis/sts/2011-06-15/api-2.json",
}

// Models are the API models of all services.
type Models map[string]*model

type model struct {
	Metadata struct {
		Protocol     string `json:"protocol"`
		XMLNamespace string `json:"xmlNamespace"`
		APIVersion   string `json:"apiVersion"`
	} `json:"metadata"`
	Operations map[string]operation `json:"operations"`
	Shapes     map[string]*shape    `json:"shapes"`
}

type operation struct {
	Input  *ref  `json:"input"`
	Output *ref  `json:"output"`
	Errors []ref `json:"errors"`
}

type ref struct {
	Shape           string `json:"shape"`
	LocationName    string `json:"locationName"`
	QueryName       string `json:"queryName"`
	ResultWrapper   string `json:"resultWrapper"`
	TimestampFormat string `json:"timestampFormat"`
}

type shape struct {
	Type      string         `json:"type"`
	Members   map[string]ref `json:"members"`
	Required  []string       `json:"required"`
	Member    *ref           `json:"member"`
	Key       *ref           `json:"key"`
	Value     *ref           `json:"value"`
	Flattened bool           `json:"flattened"`
	Enum      []string       `json:"enum"`
	Error     *struct {
		Code string `json:"code"`
	} `json:"error"`
}

// Locate finds the module's directory with the go command, run in dir ("" is
// the current one), and downloads the module if it is not there yet.
func Locate(dir string) (string, error) {
	run := func(args ...string) (string, error) {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if exit, ok := err.(*exec.ExitError); ok {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return strings.TrimSpace(string(out)), err
	}
	found, err := run("list", "-m", "-f", "{{.Dir}}", Module)
	if err == nil && found == "" {
		if _, err = run("mod", "download", Module); err == nil {
			found, err = run("list", "-m", "-f", "{{.Dir}}", Module)
		}
	}
	if err != nil {
		return "", fmt.Errorf("locate %s: %w", Module, err)
	}
	return found, nil
}

// Load reads the models from the module's directory.
func Load(dir string) (Models, error) {
	models := Models{}
	for service, path := range paths {
		data, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return nil, fmt.Errorf("load API model of %s: %w", service, err)
		}
		m := &model{}
		if err := json.Unmarshal(data, m); err != nil {
			return nil, fmt.Errorf("load API model of %s: %w", service, err)
		}
		models[service] = m
	}
	return models, nil
}
