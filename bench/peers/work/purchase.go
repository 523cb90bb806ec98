package work

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// PurchaseBytes is the length of every body of POST /json.
const PurchaseBytes = 200

// ErrPurchase is returned for a purchase without lines.
var ErrPurchase = errors.New("a purchase without lines")

// Purchase is the body of POST /json.
type Purchase struct {
	Order    int64  `json:"order"`
	Customer string `json:"customer"`
	Lines    []Line `json:"lines"`
	Note     string `json:"note"`
}

// Line is a line of a Purchase.
type Line struct {
	Product  int64 `json:"product"`
	Quantity int64 `json:"quantity"`
	Cents    int64 `json:"cents"`
}

// Receipt answers a Purchase. It cannot be known without reading every value of it.
type Receipt struct {
	Order    int64  `json:"order"`
	Customer string `json:"customer"`
	Products int64  `json:"products"` // sum of their numbers
	Pieces   int64  `json:"pieces"`
	Cents    int64  `json:"cents"`
	Note     int    `json:"note_bytes"`
}

// Receipt sums up a purchase.
func (p *Purchase) Receipt() (Receipt, error) {
	if len(p.Lines) == 0 {
		return Receipt{}, ErrPurchase
	}
	r := Receipt{Order: p.Order, Customer: p.Customer, Note: len(p.Note)}
	for i := range p.Lines {
		l := &p.Lines[i]
		r.Products += l.Product
		r.Pieces += l.Quantity
		r.Cents += l.Quantity * l.Cents
	}
	return r, nil
}

// newPurchase makes a purchase and its body from a number of at most 15 digits.
func newPurchase(order int64) (Purchase, []byte, error) {
	r := numbers{uint64(order)}
	p := Purchase{
		Order:    order,
		Customer: [...]string{"Ada Okafor", "Tom Neill", "Ines Rao"}[r.below(3)],
		Lines:    make([]Line, 3),
	}
	for i := range p.Lines {
		p.Lines[i] = Line{Product: 1 + r.below(9_999), Quantity: 1 + r.below(9), Cents: 1 + r.below(9_999)}
	}
	short, err := json.Marshal(&p)
	if err != nil {
		return p, nil, err
	}
	if len(short) > PurchaseBytes {
		return p, nil, fmt.Errorf("purchase %d is too long: %s", order, short)
	}
	p.Note = strings.Repeat("leave it with the neighbour ", 4)[:PurchaseBytes-len(short)]
	body, err := json.Marshal(&p)
	return p, body, err
}
