// Package awsmodel checks answers on the wire against AWS's own public API
// models (api-2.json, as module github.com/aws/aws-sdk-go carries them):
// every element must be known, nested and typed as the model says.
//
// It refuses to guess: an action, an element or an enum value that the model
// does not have is an error, and it never repairs an answer. It knows nothing
// of the emulated cloud that it checks.
package awsmodel

// The blank import keeps the module that carries the models in go.mod.
//
//lint:ignore SA1019 none of its code is used
import _ "github.com/aws/aws-sdk-go/aws/awserr"
