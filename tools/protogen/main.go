// Command protogen generates the Go code of externalgrpc.proto: messages and the connect
// client of the product, messages and the gRPC server of the example plug-in. It needs no
// protoc: protocompile compiles the file, and the plug-ins of protoc are Go tools of this
// module.
//
// It refuses options: which file goes where is in the table below, so that its test
// proves the committed code.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/pluginpb"
)

const (
	module = "github.com/autoscaler-agent/autoscaler-agent/"
	folder = "agent/provider/externalgrpc" // of the proto file
	source = "externalgrpc.proto"
)

// target is the code of one plug-in of protoc in one package.
type target struct {
	tool, options string
	folder        string // of the package, from the root of the checkout
}

var targets = []target{
	{"protoc-gen-go", "", folder + "/protos"},
	// package_suffix= puts the client beside the messages; simple leaves out the wrappers
	// of requests and responses.
	{"protoc-gen-connect-go", "package_suffix=,simple", folder + "/protos"},
	{"protoc-gen-go", "", "examples/externalgrpc-server/protos"},
	{"protoc-gen-go-grpc", "", "examples/externalgrpc-server/protos"},
}

func main() {
	if err := write(".."); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

// write generates every file below the root of the checkout.
func write(root string) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	for path, text := range files {
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the generated files by their path from the root of the checkout.
func generate(root string) (map[string]string, error) {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{filepath.Join(root, folder)}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(context.Background(), source)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, t := range targets {
		files, err := t.run(compiled[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.tool, err)
		}
		for _, f := range files {
			out[filepath.Join(t.folder, f.GetName())] = f.GetContent()
		}
	}
	return out, nil
}

// run starts the plug-in, which reads a request from its standard input and writes the
// response to its standard output.
func (t target) run(file protoreflect.FileDescriptor) ([]*pluginpb.CodeGeneratorResponse_File, error) {
	options := []string{"paths=source_relative", "M" + source + "=" + module + t.folder}
	if t.options != "" {
		options = append(options, t.options)
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: []string{source}, Parameter: proto.String(strings.Join(options, ","))}
	for i := range file.Imports().Len() {
		request.ProtoFile = append(request.ProtoFile, protoutil.ProtoFromFileDescriptor(file.Imports().Get(i)))
	}
	request.ProtoFile = append(request.ProtoFile, protoutil.ProtoFromFileDescriptor(file))
	in, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	tool := exec.Command("go", "tool", t.tool)
	tool.Stdin, tool.Stderr = bytes.NewReader(in), os.Stderr
	out, err := tool.Output()
	if err != nil {
		return nil, err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return nil, err
	}
	if response.GetError() != "" {
		return nil, errors.New(response.GetError())
	}
	return response.GetFile(), nil
}
