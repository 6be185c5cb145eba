"""Generators whose prompt, tools or neighbours don't fit, or that name no model."""

from __future__ import annotations

from pydantic import BaseModel

from flowstate import Block, sequencer
from flowstate.blocks.generator import generator


class Draft(BaseModel):
    text: str


class Review(BaseModel):
    risk: int


review = generator("review", input=Draft, output=Review, model="test")
other: Block[Review, Draft] = review  # wrong: it takes a Draft and gives a Review
sequencer("s", str).step(review)  # wrong: the running value is a str
sequencer("s", Draft).step(review).step(review)  # wrong: the second is given a Review

generator("a", input=Draft)  # wrong: it names no model
generator("b", model="test", output=5)  # wrong: 5 is no type
generator("c", model="test", max_turns="5")  # wrong: turns are a number
generator("d", model="test", tools=[len])  # wrong: a function is neither a block nor a tool
generator("e", model="test", temperature=1)  # wrong: that belongs in settings
generator("f", input=Draft, model="test", prompt=lambda d: d.words)  # wrong: it has no words
generator("g", input=Draft, model="test", prompt=lambda d: 5)  # wrong: a prompt is a text
