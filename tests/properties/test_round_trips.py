import csv
import io

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from fedcoast import Assessment, CoAst, Round
from fedcoast.rounds.clients import client_from_json, client_to_json
from strategies import steady

AWKWARD = ["", "=cmd|' /C calc'!A0", "'", "''", "'=x", "a\nb", "\r", "a\r\nb", "\t", "-1", "1", "a,b", '"', "ü", "名前",
           "\u202egpj.exe", "🙂", "\0", "\ud800", "quarantined: no", "+1", "@sum", " ", "../x", "x" * 256]  # fmt: skip
names = st.sampled_from(AWKWARD) | st.text(max_size=256) | st.integers(-(2**63), 2**64)
numbers = st.integers(-(2**53), 2**53) | st.floats(-1e100, 1e100)


@st.composite
def assessments(draw):
    clients = draw(st.lists(names, min_size=1, max_size=5, unique_by=lambda name: (type(name), name)))
    rounds = draw(st.lists(st.integers(0, 10**12), unique=True, max_size=4).map(sorted))
    cut = draw(st.integers(0, len(rounds)))
    some = st.lists(st.sampled_from(clients), unique=True)
    reasons = {
        number: {client: draw(st.text()) for client in draw(some)} for number in draw(st.lists(st.sampled_from(rounds)))
    } if rounds else {}  # fmt: skip
    return Assessment(
        method="mine",
        scores={client: draw(numbers) for client in clients},
        credits={
            number: {client: draw(numbers) for client in draw(some) if client not in reasons.get(number, {})}
            for number in rounds[:cut]
        },
        pending=tuple(rounds[cut:]),
        rounds_scored={client: draw(st.integers(0, 99)) for client in clients},
        quarantined={number: of for number, of in reasons.items() if of},
        settings={"keep": draw(st.floats(0, 1)), "layers": draw(st.lists(st.text()))},
    )


@steady
@given(assessments())
def test_an_assessment_survives_json(assessment):
    text = assessment.to_json()
    assert Assessment.from_json(text) == assessment
    assert Assessment.from_json(text).to_json() == text
    assert text.isascii()


@steady
@given(assessments())
def test_an_assessment_survives_csv(assessment):
    text = assessment.to_csv()
    assert Assessment.from_csv(text) == assessment
    assert Assessment.from_csv(text).to_csv() == text


@steady
@given(assessments())
def test_no_cell_of_the_csv_is_a_formula_a_client_chose(assessment):
    for row in list(csv.reader(io.StringIO(assessment.to_csv(), newline="")))[1:]:
        assert not row[0].startswith(("=", "+", "-", "@", "\t", "\r"))


@steady
@given(assessments())
def test_every_assessment_prints_without_control_characters(assessment):
    text = str(assessment)
    assert all(character.isprintable() or character == "\n" for character in text)
    assert text.count("\n") >= len(assessment.scores)


@steady
@given(names)
@example(7423646701073919812)
@example(-1)
def test_a_client_survives_json_with_its_type(name):
    back = client_from_json(client_to_json(name))
    assert (back, type(back)) == (name, type(name))


@steady
@given(st.lists(names, min_size=1, max_size=5, unique_by=lambda name: (type(name), name)))
def test_any_names_can_be_assessed_and_come_back(clients):
    assessor = CoAst(horizon=1)
    for number in (1, 2, 3):
        local = {client: {"w": np.arange(4.0) * place} for place, client in enumerate(clients)}
        assessor.observe(Round(number, {"w": np.zeros(4)}, local, {"w": np.full(4, float(number))}))
    assessment = assessor.assessment()
    assert assessment.scores.keys() == set(clients)
    assert Assessment.from_json(assessment.to_json()) == assessment
    assert Assessment.from_csv(assessment.to_csv()) == assessment
