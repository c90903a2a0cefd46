"""What a domain's author asks: is it right, what will the grammar guarantee, what does the model see."""
