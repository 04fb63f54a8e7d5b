def HTML(text=None, *a, **k):
    return text


def display(*a, **k):
    print(*a)
