// Command etcd is the real etcd server, built from its pinned module so that the
// test control plane needs no download besides Go modules.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
