// Command quantity says what Kubernetes makes of quantity texts.
//
// It reads one JSON string per line and writes one JSON object per line, so that the tests of
// the Rust crate can compare themselves with the Go library instead of with memory.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/big"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Exponents past this would make the exact value a number of megabytes.
const largestScale = 5000

type verdict struct {
	In  string `json:"in"`
	OK  bool   `json:"ok"`
	Err string `json:"err,omitempty"`
	// Text is String(): the input itself where the library keeps it, else the canonical form.
	Text string `json:"text,omitempty"`
	// Canonical is the canonical form, computed anew.
	Canonical string `json:"canonical,omitempty"`
	Format    string `json:"format,omitempty"`
	// Nano is the exact value in nano-units; null where it would be too long to write.
	Nano *string `json:"nano,omitempty"`
	// Value and Milli are what Value() and MilliValue() return: rounded away from zero, wrapped where they overflow.
	Value int64 `json:"value"`
	Milli int64 `json:"milli"`
}

func judge(in string) verdict {
	parsed, err := resource.ParseQuantity(in)
	if err != nil {
		return verdict{In: in, Err: err.Error()}
	}
	number, suffix := parsed.CanonicalizeBytes(nil)
	copied := parsed.DeepCopy()
	return verdict{
		In:        in,
		OK:        true,
		Text:      parsed.String(),
		Canonical: string(number) + string(suffix),
		Format:    string(parsed.Format),
		Nano:      nano(&copied),
		Value:     parsed.Value(),
		Milli:     parsed.MilliValue(),
	}
}

func nano(q *resource.Quantity) *string {
	dec := q.AsDec()
	if dec.Sign() == 0 {
		zero := "0"
		return &zero
	}
	scale := int64(9) - int64(dec.Scale())
	if scale < 0 || scale > largestScale {
		return nil
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(scale), nil)
	text := power.Mul(power, dec.UnscaledBig()).String()
	return &text
}

func run() error {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for in.Scan() {
		var text string
		if err := json.Unmarshal(in.Bytes(), &text); err != nil {
			return fmt.Errorf("%q is not a JSON string: %w", in.Text(), err)
		}
		if err := encoder.Encode(judge(text)); err != nil {
			return err
		}
	}
	if err := in.Err(); err != nil {
		return err
	}
	return out.Flush()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "quantity:", err)
		os.Exit(1)
	}
}
