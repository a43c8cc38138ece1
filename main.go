// Todoku sends SMS and automated calls through Twilio and knows what became of each one.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // zones are the same on every machine, and present in an empty container

	"github.com/todoku/todoku/cli"
	"github.com/todoku/todoku/devstack"
)

func main() {
	devstack.GuardMain()
	os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
